// Package auth authenticates requests: by the access token of the actor, and by the signature of
// the agency whose app sends it.
//
//	Authorization ─► Tokens ─► Identity: actor, scopes, until when      (keys: Keys, read from the identity provider)
//	X-Agency-Signature ─► Signatures.Check ─► Signed: key, agency code  (then Signatures.Use, once for each change)
//
// Refusals are *telematics.Error with one of the codes below. Where keys or signatures cannot be
// read, the error has a method Unavailable() bool that returns true. The caller decides about the
// HTTP status, and about what the actor may do. All types are safe for concurrent use. Keys.Run
// blocks; its caller owns the goroutine.
package auth

import "motorpool/telematics"

// Codes of requests without a valid token or signature, or without the required rights.
const (
	Unauthenticated   telematics.Code = "unauthenticated"
	Forbidden         telematics.Code = "forbidden"
	SignatureMissing  telematics.Code = "agency_signature_missing"
	SignatureInvalid  telematics.Code = "agency_signature_invalid"
	SignatureStale    telematics.Code = "agency_signature_stale"
	SignatureReplayed telematics.Code = "agency_signature_replayed"
	AgencyMismatch    telematics.Code = "agency_mismatch"
)

// UnavailableError is why a request cannot be authenticated at the moment.
type UnavailableError string

func (e UnavailableError) Error() string { return string(e) }

// Unavailable reports that the request may be repeated later.
func (UnavailableError) Unavailable() bool { return true }
