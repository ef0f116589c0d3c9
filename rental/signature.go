package rental

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"motorpool/telematics"
)

// KeyState is the state of an agency's key.
type KeyState string

const (
	KeyActive   KeyState = "active"
	KeyRetiring KeyState = "retiring" // valid until a date
	KeyRevoked  KeyState = "revoked"
)

// AgencyKey is a secret with which an agency's apps sign requests.
type AgencyKey struct {
	ID         string
	Agency     telematics.AgencyID
	AgencyCode string
	Secret     []byte // 32 bytes
	State      KeyState
	Retires    time.Time // of a retiring key
	Created    time.Time
}

// String returns the key's id, agency and state, without the secret.
func (k AgencyKey) String() string {
	return fmt.Sprintf("agency key %s of %d (%s)", k.ID, k.Agency, k.State)
}

// GoString hides the secret.
func (k AgencyKey) GoString() string { return k.String() }

// LogValue hides the secret.
func (k AgencyKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// SecretSize is the length of an agency key's secret in bytes.
const SecretSize = 32

// Valid reports whether signatures with the key are accepted at a time.
func (k AgencyKey) Valid(now time.Time) bool {
	switch k.State {
	case KeyActive:
		return true
	case KeyRetiring:
		return now.Before(k.Retires)
	default:
		return false
	}
}

// SignatureHeader is the name of the request header with the agency's signature.
const SignatureHeader = "X-Agency-Signature"

// SignatureSkew is how far the time of a signature may be from ours.
const SignatureSkew = 300 * time.Second

const (
	maxSignature = 512 // bytes
	maxKeyID     = 64
	minNonce     = 16
	maxNonce     = 64
	maxMACs      = 2
)

// Signature is the parsed value of the header.
type Signature struct {
	Key   string
	At    time.Time // whole seconds
	Nonce string
	MACs  [][]byte // one, or two while a secret changes
}

// The errors of ParseSignature.
var (
	errSignatureLong  = errors.New("it is longer than 512 bytes")
	errSignatureParts = errors.New(
		"its parts must be k, t, n, v1 and at most another v1, in this order, as name=value joined by commas without spaces",
	)
	errSignatureKey   = errors.New("k must be the key id: 1 to 64 characters of A-Z, a-z, 0-9, - and _")
	errSignatureTime  = errors.New("t must be whole seconds since 1970, in decimal digits")
	errSignatureNonce = errors.New("n must be 16 to 64 characters of base64url, without padding")
	errSignatureMAC   = errors.New("v1 must be 64 lower-case hexadecimal digits")
)

// ParseSignature parses the header. It checks the form only; its errors are for the developer of an
// app.
func ParseSignature(header string) (Signature, error) {
	if len(header) > maxSignature {
		return Signature{}, errSignatureLong
	}
	parts := strings.Split(header, ",")
	names := []string{"k=", "t=", "n=", "v1=", "v1="}
	if len(parts) < len(names)+1-maxMACs || len(parts) > len(names) {
		return Signature{}, errSignatureParts
	}
	for i := range parts {
		value, ok := strings.CutPrefix(parts[i], names[i])
		if !ok {
			return Signature{}, errSignatureParts
		}
		parts[i] = value
	}
	at, ok := parseSeconds(parts[1])
	switch {
	case !isBase64URL(parts[0], 1, maxKeyID):
		return Signature{}, errSignatureKey
	case !ok:
		return Signature{}, errSignatureTime
	case !isBase64URL(parts[2], minNonce, maxNonce):
		return Signature{}, errSignatureNonce
	}
	s := Signature{Key: parts[0], At: at, Nonce: parts[2]}
	for _, text := range parts[3:] {
		mac, err := hex.DecodeString(text)
		if err != nil || len(mac) != sha256.Size || text != strings.ToLower(text) {
			return Signature{}, errSignatureMAC
		}
		s.MACs = append(s.MACs, mac)
	}
	return s, nil
}

// parseSeconds accepts only one spelling of each number, because the text is signed.
func parseSeconds(text string) (time.Time, bool) {
	const longest = 12 // digits, which is beyond the year 30000
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(text) > longest || strconv.FormatInt(seconds, 10) != text || seconds < 0 {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0).UTC(), true
}

func isBase64URL(text string, shortest, longest int) bool {
	if len(text) < shortest || len(text) > longest {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// String returns the value of the header.
func (s Signature) String() string {
	var b strings.Builder
	b.WriteString("k=" + s.Key + ",t=" + strconv.FormatInt(s.At.Unix(), 10) + ",n=" + s.Nonce)
	for _, mac := range s.MACs {
		b.WriteString(",v1=" + hex.EncodeToString(mac))
	}
	return b.String()
}

// Fresh reports whether the signature's time is at most SignatureSkew from now, in whole seconds.
func (s Signature) Fresh(now time.Time) bool {
	return now.Truncate(time.Second).Sub(s.At).Abs() <= SignatureSkew
}

// SignatureUse is the use of a signature for a change, on behalf of a client.
type SignatureUse struct {
	Key, Nonce string
	At         time.Time
	Actor      telematics.Actor
}

// UseResult is the result of recording a SignatureUse.
type UseResult int

const (
	FirstUse   UseResult = iota + 1 // recorded now
	UsedBefore                      // nothing changed
	// Nothing changed: by the clock of Postgres it is too old, or in the future.
	NotFresh
	// Nothing changed: the client has the maximum number of stored fresh signatures.
	TooManyUses
)

// SignedRequest holds the signed parts of a request.
type SignedRequest struct {
	Method string
	Path   string // as on the request line
	Query  string // likewise, without the question mark
	Body   []byte
	Token  string // the access token
}

// Canonical returns the text whose MAC is the signature.
func (r SignedRequest) Canonical(at time.Time, nonce string) string {
	return strings.Join([]string{
		"v1", strconv.FormatInt(at.Unix(), 10), nonce, r.Method, r.Path, r.Query, hexSHA256(r.Body), hexSHA256([]byte(r.Token)),
	}, "\n")
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Sign signs the request with a key at a time. Use each nonce once.
func (r SignedRequest) Sign(key string, secret []byte, at time.Time, nonce string) Signature {
	return Signature{Key: key, At: at.Truncate(time.Second), Nonce: nonce, MACs: [][]byte{r.mac(secret, at, nonce)}}
}

func (r SignedRequest) mac(secret []byte, at time.Time, nonce string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(r.Canonical(at, nonce)))
	return h.Sum(nil)
}

// Verify reports whether the signature was made for the request with the secret. Its time does not
// depend on which bytes differ.
func (s Signature) Verify(secret []byte, r SignedRequest) bool {
	want := r.mac(secret, s.At, s.Nonce)
	fits := false
	for _, mac := range s.MACs {
		fits = hmac.Equal(mac, want) || fits
	}
	return fits
}

// SplitTarget returns the path and the raw query of a request line's target: a path, or a URL, as
// in requests to proxies. Nothing is decoded.
func SplitTarget(target string) (path, query string) {
	path, query, _ = strings.Cut(target, "?")
	if strings.HasPrefix(path, "/") {
		return path, query
	}
	if _, rest, ok := strings.Cut(path, "://"); ok {
		_, path, _ = strings.Cut(rest, "/")
		return "/" + path, query
	}
	return path, query
}

// NewKeysADay is how many keys an agency gets within a day: no key is ever deleted, and every
// instance reads all of them. Half is enough for rotations; double doubles the growth.
const NewKeysADay = 50

// ErrKeysUsedUp is the error for a key over NewKeysADay.
var ErrKeysUsedUp = errors.New("the agency got all its new keys of the day")
