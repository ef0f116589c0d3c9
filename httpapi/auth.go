package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/rental"
	"motorpool/telematics"
)

// maxToken bounds what is parsed, in bytes.
const maxToken = 8 << 10

var errNoToken = &telematics.Error{Code: unauthenticated,
	Message: "An access token is needed: send the header Authorization: Bearer <ACCESS_TOKEN>."}

func badToken(why string, cause error) *telematics.Error {
	return &telematics.Error{Code: unauthenticated, Message: why, Cause: cause}
}

// authenticate returns what the token says that the header bears.
func (t *Tokens) authenticate(ctx context.Context, h http.Header) (identity, error) {
	token, err := bearer(h.Values(echo.HeaderAuthorization))
	if err != nil {
		return identity{}, err
	}
	return t.identify(ctx, token)
}

// bearer returns the token in the Authorization headers of a request: one header, of the
// scheme Bearer, with what may be a JWT in compact form.
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

// signatureChallenge is of an agency's signature alone: a client of OAuth that meets the scheme Bearer exchanges its
// good token for a new one, again and again.
const signatureChallenge = `Motorpool-Signature realm="motorpool", header="` + rental.SignatureHeader + `"`

// challenge says how to authenticate, on every 401: with a token (RFC 6750, section 3), or with a signature.
func challenge(h http.Header, err error) {
	failure := asError(err)
	switch {
	case statuses[failure.Code] != http.StatusUnauthorized:
	case failure.Code != unauthenticated:
		h.Set(echo.HeaderWWWAuthenticate, signatureChallenge)
	case errors.Is(err, errNoToken): // nothing is wrong with the token
		h.Set(echo.HeaderWWWAuthenticate, `Bearer realm="motorpool"`)
	default:
		h.Set(echo.HeaderWWWAuthenticate,
			fmt.Sprintf(`Bearer realm="motorpool", error="invalid_token", error_description=%q`, failure.Message))
	}
}
