package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"motorpool/rental"
	"motorpool/telematics"
)

var errNoToken = &telematics.Error{Code: Unauthenticated,
	Message: "An access token is required: send the header Authorization: Bearer <ACCESS_TOKEN>."}

func badToken(why string, cause error) *telematics.Error {
	return &telematics.Error{Code: Unauthenticated, Message: why, Cause: cause}
}

// Authenticate verifies the token of an Authorization header. Its error is a *telematics.Error with
// Unauthenticated, or has a method Unavailable() bool that returns true.
func (t *Tokens) Authenticate(ctx context.Context, h http.Header) (Identity, error) {
	token, err := bearer(h.Values("Authorization"))
	if err != nil {
		return Identity{}, err
	}
	return t.identify(ctx, token)
}

// bearer returns the token in the Authorization headers of a request: there must be one
// header, of the scheme Bearer, with the form of a compact JWT.
func bearer(headers []string) (string, error) {
	if len(headers) == 0 {
		return "", errNoToken
	}
	if len(headers) > 1 {
		return "", badToken("There is more than one Authorization header.", nil)
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errNoToken
	}
	token = strings.Trim(token, " ")
	switch {
	case len(token) > maxToken:
		return "", badToken(fmt.Sprintf("The access token is longer than %d bytes.", maxToken), nil)
	case strings.Count(token, ".") != 2 || strings.ContainsFunc(token, notInJWT):
		return "", badToken("The access token is not a JWT.", nil)
	}
	return token, nil
}

func notInJWT(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// signatureChallenge names only the agency's signature: at the scheme Bearer, an OAuth client would
// exchange its valid token for a new one, again and again.
const signatureChallenge = `Motorpool-Signature realm="motorpool", header="` + rental.SignatureHeader + `"`

// Challenge returns the header WWW-Authenticate for an error that is answered with 401: it demands
// a token (RFC 6750, section 3), or a signature. It is empty for other errors.
func Challenge(err error) string {
	var failure *telematics.Error
	if !errors.As(err, &failure) {
		return ""
	}
	switch failure.Code {
	case SignatureMissing, SignatureInvalid, SignatureStale, SignatureReplayed:
		return signatureChallenge
	case Unauthenticated:
		if errors.Is(err, errNoToken) { // there was no token, so none is invalid
			return `Bearer realm="motorpool"`
		}
		return fmt.Sprintf(`Bearer realm="motorpool", error="invalid_token", error_description=%q`, failure.Message)
	}
	return ""
}
