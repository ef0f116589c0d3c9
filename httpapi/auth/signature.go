package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// AgencyKeys returns the secrets with which agencies' apps sign requests.
type AgencyKeys interface {
	// AgencyKey returns a key in any state; false: there is none.
	AgencyKey(ctx context.Context, id string) (rental.AgencyKey, bool, error)
}

// SignatureUses records which signatures were used for changes.
type SignatureUses interface {
	// Use records the use of a signature durably. After an error it is unknown whether it was
	// recorded.
	Use(context.Context, rental.SignatureUse) (rental.UseResult, error)
}

// Signatures checks the signatures of agencies' apps. Safe for concurrent use.
type Signatures struct {
	Keys    AgencyKeys
	Uses    SignatureUses
	Timeout time.Duration // of one call of Keys or Uses
	Now     func() time.Time
}

// Signed is a verified signature of a request.
type Signed struct {
	AgencyCode string
	signature  rental.Signature
}

// ErrTooManyUses is returned by Use when the client has used too many fresh signatures.
var ErrTooManyUses = errors.New("the client has too many unexpired signatures")

// unknownSecret replaces the secret of a missing or no longer valid key, so that the check takes
// the same time.
var unknownSecret = make([]byte, rental.SecretSize)

// Check checks the agency signature of a request: that it was made for this request, then that it
// is fresh. The key's agency must be that of the token. Check records nothing: see Use. Its error
// is a *telematics.Error, or has a method Unavailable() bool, or is that of Keys.
//
// Failed attempts count against no limit: a secret cannot be guessed, an attempt costs only CPU
// time, and counting would let the thief of a token lock its owner out.
func (s *Signatures) Check(r *http.Request, body []byte, agency telematics.AgencyID) (Signed, error) {
	signature, err := readSignature(r.Header)
	if err != nil {
		return Signed{}, err
	}
	key, err := s.key(r.Context(), signature.Key)
	if err != nil {
		return Signed{}, err
	}
	secret, isValid := key.Secret, key.Valid(s.Now()) && len(key.Secret) == rental.SecretSize
	if !isValid {
		secret = unknownSecret
	}
	if fits := signature.Verify(secret, signedPart(r, body)); !fits || !isValid {
		return Signed{}, badSignature(doesNotFit)
	}
	if !signature.Fresh(s.Now()) {
		return Signed{}, s.stale(signature)
	}
	if key.Agency != agency {
		return Signed{}, &telematics.Error{
			Code:    AgencyMismatch,
			Message: "The access token and the key that signed the request belong to different agencies.",
		}
	}
	return Signed{AgencyCode: key.AgencyCode, signature: signature}, nil
}

const doesNotFit = "the key is not known or no longer valid, or something else was signed. " +
	"Sign the method, path, raw query, body and access token exactly as they are sent"

func badSignature(why string) *telematics.Error {
	return &telematics.Error{Code: SignatureInvalid, Message: fmt.Sprintf("The agency signature is not valid: %s.", why)}
}

// readSignature parses the header of a signature. It refuses a request with Content-Encoding:
// libraries differ on whether the encoded or the decoded body is signed.
func readSignature(h http.Header) (rental.Signature, error) {
	headers := h.Values(rental.SignatureHeader)
	if len(headers) == 0 {
		return rental.Signature{}, &telematics.Error{Code: SignatureMissing, Message: fmt.Sprintf(
			"An agency signature is needed: send the header %s: k=<key id>,t=<unix seconds>,n=<nonce>,v1=<hex>.", rental.SignatureHeader)}
	}
	if len(headers) > 1 {
		return rental.Signature{}, badSignature("there is more than one header")
	}
	if len(h.Values("Content-Encoding")) > 0 {
		return rental.Signature{}, badSignature(
			"the request has a Content-Encoding; send the body as it was signed, without Content-Encoding",
		)
	}
	signature, err := rental.ParseSignature(headers[0])
	if err != nil {
		return rental.Signature{}, badSignature(err.Error())
	}
	return signature, nil
}

// signedPart returns the part of a request that its app has signed, without any decoding.
func signedPart(r *http.Request, body []byte) rental.SignedRequest {
	path, query := rental.SplitTarget(r.RequestURI)
	token, _ := bearer(r.Header.Values("Authorization")) // it was read before
	return rental.SignedRequest{Method: r.Method, Path: path, Query: query, Body: body, Token: token}
}

// key returns the key with an id; the zero value: there is none.
func (s *Signatures) key(ctx context.Context, id string) (rental.AgencyKey, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	key, _, err := s.Keys.AgencyKey(ctx, id)
	return key, err
}

// Use records the use of the signature of a change, even if the context ends meanwhile. Call it
// after counting the client's limit of requests, so that a flood writes no more signatures than
// that. Do not call it for a read: its repetition changes nothing. Its error is ErrTooManyUses, a
// *telematics.Error with SignatureReplayed or SignatureStale, that of Uses, or has a method
// Unavailable() bool.
func (s *Signatures) Use(ctx context.Context, signed Signed, actor telematics.Actor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
	defer cancel()
	signature := signed.signature
	used, err := s.Uses.Use(ctx, rental.SignatureUse{Key: signature.Key, Nonce: signature.Nonce, At: signature.At, Actor: actor})
	switch {
	case err != nil:
		return err
	case used == rental.FirstUse:
		return nil
	case used == rental.NotFresh:
		return s.stale(signature)
	case used == rental.TooManyUses:
		return ErrTooManyUses
	}
	return &telematics.Error{
		Code:    SignatureReplayed,
		Message: "The agency signature was used before: sign each attempt again, with a new nonce.",
	}
}

func (s *Signatures) stale(signature rental.Signature) *telematics.Error {
	return &telematics.Error{Code: SignatureStale, Message: fmt.Sprintf(
		"The agency signature is of %s, and it is %s here: at most %.0f seconds may be between. "+
			"Set the device's clock, and sign every attempt anew.",
		telematics.FormatTime(signature.At), telematics.FormatTime(s.Now()), rental.SignatureSkew.Seconds())}
}
