package httpapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/contract"
	"motorpool/telematics"
)

const (
	headerIdempotencyKey      = "Idempotency-Key"
	headerIdempotencyReplayed = "Idempotency-Replayed"
	maxIdempotencyKey         = 255
)

// readKey reads the caller's own name for a POST. Its scope is the caller, and it stands
// for this request alone.
func (call *call) readKey(r *http.Request, wrong *contract.FieldErrors) {
	values := r.Header.Values(headerIdempotencyKey)
	if r.Method != http.MethodPost || len(values) == 0 {
		return
	}
	key := values[0]
	visible := strings.IndexFunc(key, func(c rune) bool { return c < '!' || c > '~' }) < 0
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey || !visible {
		wrong.Add(headerIdempotencyKey, fmt.Sprintf("must be one header of 1 to %d visible ASCII characters", maxIdempotencyKey))
		return
	}
	request := sha256.New()
	fmt.Fprintf(request, "%s\n%s\n%s\n", r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	request.Write(call.body)
	call.key = &telematics.IdempotencyKey{Agency: call.actor.Agency, Subject: call.actor.Subject, Key: key}
	request.Sum(call.key.Fingerprint[:0])
}

// made returns what was made under the call's idempotency key, if it has one. The record is read once for a call.
func (s *server) made(ctx context.Context, call *call) (telematics.Made, bool, error) {
	if call.key == nil {
		return telematics.Made{}, false, nil
	}
	if call.lookup == nil {
		made, found, err := s.Bulks.Made(ctx, *call.key)
		if err != nil {
			return telematics.Made{}, false, err
		}
		call.lookup = &telematics.KeyLookup{Made: made, Found: found}
	}
	return call.lookup.Made, call.lookup.Found, nil
}

func keyRequired() *telematics.Error {
	return &telematics.Error{Code: idempotencyKeyRequired,
		Message: "This moves money: send an Idempotency-Key, a name of your own for this request, so that it can be repeated without moving it twice."}
}

// markReplayed says that the answer is that of an earlier request.
func markReplayed(c echo.Context, replayed bool) {
	if replayed {
		c.Response().Header().Set(headerIdempotencyReplayed, "true")
	}
}
