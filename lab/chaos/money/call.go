package money

import (
	"cmp"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"time"

	crand "crypto/rand"

	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/telematics"
)

const (
	callTimeout    = 8 * time.Second
	hangUpPercent  = 8 // of calls whose caller does not wait for the answer
	hangUpWithin   = 40 * time.Millisecond
	firstRetry     = 50 * time.Millisecond
	lastRetry      = 700 * time.Millisecond
	definiteWithin = 4 * time.Minute // after the first attempt
)

// call is a request to any instance.
type call struct {
	method string // Defaults to POST
	path   string
	body   []byte
	key    string
	prefer string  // how long the service waits
	client *client // nil: an administrator
}

// answer is an HTTP answer.
type answer struct {
	status int // zero: none
	code   telematics.Code

	replayed bool // the answer to an earlier attempt
	data     json.RawMessage
}

// definite reports whether an answer says that the request was performed, or that it was not.
// Repeating it changes nothing.
func (s answer) definite() bool {
	return s.status != 0 && s.status < http.StatusInternalServerError && s.status != http.StatusTooManyRequests &&
		s.code != telematics.IdempotencyInProgress
}

// callUntilDefinite repeats a call, at any instance, until the answer is definite. It returns the
// number of attempts, and the time of the last one without a definite answer, which may still be in
// flight.
func (r *round) callUntilDefinite(ctx context.Context, rng *rand.Rand, c call) (s answer, tries int, open time.Time) {
	deadline := time.Now().Add(definiteWithin)
	for retry := firstRetry; ctx.Err() == nil && time.Now().Before(deadline); retry = min(2*retry, lastRetry) {
		tries++
		patience := callTimeout
		if rng.IntN(100) < hangUpPercent && !r.healed.Load() {
			patience = rand.N(hangUpWithin)
		}
		if s = r.callOnce(ctx, c, r.anyInstance(rng), patience); s.definite() {
			return s, tries, open
		}
		open = time.Now()
		world.Pause(ctx, retry/2+rand.N(retry))
	}
	return answer{}, tries, open
}

func (r *round) anyInstance(rng *rand.Rand) *world.Instance {
	return r.Running[rng.IntN(len(r.Running))]
}

// callOnce makes a call once.
func (r *round) callOnce(ctx context.Context, c call, at *world.Instance, patience time.Duration) (s answer) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var body struct {
		Data  json.RawMessage
		Error struct{ Code telematics.Code }
	}
	status, header, err := r.request(c, at).Do(ctx, world.Callers, &body)
	if err != nil {
		return answer{}
	}
	return answer{status: status, code: body.Error.Code, replayed: header.Get("Idempotency-Replayed") == "true", data: body.Data}
}

func (r *round) request(c call, at *world.Instance) world.Request {
	request := world.Request{
		Method: c.method, URL: at.Public + c.path, Token: r.admin, Body: c.body,
		Header: map[string]string{"Idempotency-Key": c.key, "Prefer": c.prefer},
	}
	if c.client != nil {
		request.Token = c.client.token
		key := r.agencyKeys[c.client.actor.Agency]
		signed := rental.SignedRequest{Method: cmp.Or(c.method, http.MethodPost), Path: c.path, Body: c.body, Token: request.Token}
		request.Header[rental.SignatureHeader] = signed.Sign(key.ID, key.Secret, time.Now(), crand.Text()).String()
	}
	return request
}
