// Package auth finds out who makes a request: the access token of the actor, and the signature of
// the agency whose app sends it.
//
//	Authorization ─► Tokens ─► Identity: actor, scopes, until when      (keys: Keys, read from the identity provider)
//	X-Agency-Signature ─► Signatures.Check ─► Signed: key, agency code  (then Signatures.Use, once for each change)
//
// Refusals are *telematics.Error with one of the codes below. Where keys or signatures cannot be
// read, the error has a method Unavailable() bool that returns true. Which HTTP status that is, and
// what the actor may do, is decided by the caller. All types are safe for concurrent use. Keys.Run
// is a loop; its caller owns it.
package auth

import "motorpool/telematics"

// Codes of requests without a valid token or signature, and without the right to what they ask for.
const (
	Unauthenticated   telematics.Code = "unauthenticated"
	Forbidden         telematics.Code = "forbidden"
	SignatureMissing  telematics.Code = "agency_signature_missing"
	SignatureInvalid  telematics.Code = "agency_signature_invalid"
	SignatureStale    telematics.Code = "agency_signature_stale"
	SignatureReplayed telematics.Code = "agency_signature_replayed"
	AgencyMismatch    telematics.Code = "agency_mismatch"
)

// unavailableError is why it cannot be said for now who makes a request.
type unavailableError string

func (e unavailableError) Error() string { return string(e) }

// Unavailable reports that the request may be repeated later.
func (unavailableError) Unavailable() bool { return true }
