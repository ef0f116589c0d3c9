package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/rental"
	"motorpool/telematics"
)

var (
	errNoKeyStore   = errors.New("no agency keys are configured")
	errNoSignatures = errors.New("no memory of used signatures is configured")
)

// unknownSecret stands in for the secret of a key that is not there, or no longer valid: it costs the same
// to find out that nothing fits.
var unknownSecret = make([]byte, rental.SecretSize)

// checkSignature checks a request's agency signature: that it is of this very request, then that it is fresh. The key names the
// agency, which must be the token's. It writes nothing: see useSignature.
//
// Failed attempts are counted against no limit: to find a secret by guessing is hopeless, what one costs us is
// memory alone, and counted, they would let a thief of a token lock its owner out.
func (s *server) checkSignature(c echo.Context, call *call) error {
	request := c.Request()
	signature, err := readSignature(request.Header)
	if err != nil {
		return err
	}
	key, err := s.agencyKey(request.Context(), signature.Key)
	if err != nil {
		return err
	}
	secret, known := key.Secret, key.Valid(s.Now()) && len(key.Secret) == rental.SecretSize
	if !known {
		secret = unknownSecret
	}
	if fits := signature.Verify(secret, call.signed(request)); !fits || !known {
		return badSignature(doesNotFit)
	}
	if !signature.Fresh(s.Now()) {
		return s.staleSignature(signature)
	}
	if key.Agency != call.actor.Agency {
		return &telematics.Error{Code: agencyMismatch, Message: "The access token is of another agency than the key that signed the request."}
	}
	call.agencyCode, call.signature = key.AgencyCode, signature
	return nil
}

const doesNotFit = "the key is not known or no longer valid, or something else was signed. " +
	"Sign the method, path, raw query, body and access token exactly as they are sent"

func badSignature(why string) *telematics.Error {
	return &telematics.Error{Code: signatureInvalid, Message: fmt.Sprintf("The agency signature is not valid: %s.", why)}
}

// readSignature returns what the header says. What is encoded on the way cannot be signed: whether the text before or
// after is meant, each library decides otherwise.
func readSignature(h http.Header) (rental.Signature, error) {
	headers := h.Values(rental.SignatureHeader)
	if len(headers) == 0 {
		return rental.Signature{}, &telematics.Error{Code: signatureMissing, Message: fmt.Sprintf(
			"An agency signature is needed: send the header %s: k=<key id>,t=<unix seconds>,n=<nonce>,v1=<hex>.", rental.SignatureHeader)}
	}
	if len(headers) > 1 {
		return rental.Signature{}, badSignature("there is more than one header")
	}
	if len(h.Values(echo.HeaderContentEncoding)) > 0 {
		return rental.Signature{}, badSignature("the request has a Content-Encoding; send the body as it was signed, not encoded")
	}
	signature, err := rental.ParseSignature(headers[0])
	if err != nil {
		return rental.Signature{}, badSignature(err.Error())
	}
	return signature, nil
}

// signed returns what of the request its app has signed, as it was before anything was decoded.
func (call *call) signed(r *http.Request) rental.SignedRequest {
	path, query := rental.SplitTarget(r.RequestURI)
	token, _ := bearer(r.Header.Values(echo.HeaderAuthorization)) // it was read before
	return rental.SignedRequest{Method: r.Method, Path: path, Query: query, Body: call.body, Token: token}
}

// agencyKey returns the key with an id, zero where there is none.
func (s *server) agencyKey(ctx context.Context, id string) (rental.AgencyKey, error) {
	if s.AgencyKeys == nil {
		return rental.AgencyKey{}, away(errNoKeyStore)
	}
	ctx, cancel := context.WithTimeout(ctx, s.ReadBudget)
	defer cancel()
	key, _, err := s.AgencyKeys.AgencyKey(ctx, id)
	return key, err
}

// retrySignature is when fewer of a client's signatures are fresh.
const retrySignature = time.Minute

// useSignature uses up the signature of a change. It comes after the client's limit of requests, so that a flood of requests writes
// no more signatures than the limit lets through. A read is not written: repeated, it changes nothing.
func (s *server) useSignature(request *http.Request, call *call) error {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return nil
	}
	if s.Signatures == nil {
		return away(errNoSignatures)
	}
	// A caller that hangs up has used it, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(request.Context()), s.ReadBudget)
	defer cancel()
	used, err := s.Signatures.Use(ctx, rental.SignatureUse{
		Key: call.signature.Key, Nonce: call.signature.Nonce, At: call.signature.At, Actor: call.actor,
	})
	switch {
	case err != nil:
		return err
	case used == rental.FirstUse:
		return nil
	case used == rental.NotFresh:
		return s.staleSignature(call.signature)
	case used == rental.TooManyUses:
		return &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: retrySignature,
			Message: "This client has signed too many changes within ten minutes. Try again in 60 seconds."}
	}
	return &telematics.Error{Code: signatureReplayed, Message: "The agency signature was used before: sign every attempt anew, with a new nonce."}
}

func (s *server) staleSignature(signature rental.Signature) *telematics.Error {
	return &telematics.Error{Code: signatureStale, Message: fmt.Sprintf(
		"The agency signature is of %s, and it is %s here: at most %.0f seconds may be between. Set the device's clock, and sign every attempt anew.",
		timestamp(signature.At), timestamp(s.Now()), rental.SignatureSkew.Seconds())}
}
