package money

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	crand "crypto/rand"

	"motorpool/rental"
	"motorpool/telematics"
)

// callers is one HTTP client for all. It opens a connection for each call: a client that keeps them sends a request with
// an Idempotency-Key again by itself when its connection breaks.
var callers = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const (
	callTimeout    = 8 * time.Second
	hangUpPercent  = 8 // of callers, who do not wait for the answer
	hangUpWithin   = 40 * time.Millisecond
	firstRetry     = 50 * time.Millisecond
	lastRetry      = 700 * time.Millisecond
	definiteWithin = 4 * time.Minute // whoever has no definite answer by then never gets one
)

// call is a request to any instance, from one who may do it.
type call struct {
	path   string
	body   []byte
	key    string
	client *client // nil: an administrator
}

// said is an answer.
type said struct {
	status int // zero: none
	code   telematics.Code
}

// definite reports whether an answer says what became of the request: it did all, or nothing, and asking again changes nothing.
func (s said) definite() bool {
	return s.status != 0 && s.status < http.StatusInternalServerError && s.status != http.StatusTooManyRequests &&
		s.code != telematics.IdempotencyInProgress
}

// insist makes a call at one instance after another until the answer is definite. It returns how often it was made, and when
// an attempt was left last without an answer: that one may still be on its way.
func (w *world) insist(ctx context.Context, rng *rand.Rand, c call) (s said, tries int, open time.Time) {
	deadline := time.Now().Add(definiteWithin)
	for retry := firstRetry; ctx.Err() == nil && time.Now().Before(deadline); retry = min(2*retry, lastRetry) {
		tries++
		patience := callTimeout
		if rng.IntN(100) < hangUpPercent && !w.healed.Load() {
			patience = rand.N(hangUpWithin)
		}
		if s = w.ask(ctx, c, w.instances[rng.IntN(len(w.instances))], patience); s.definite() {
			return s, tries, open
		}
		open = time.Now()
		pause(ctx, retry/2+rand.N(retry))
	}
	return said{}, tries, open
}

// ask makes a call once.
func (w *world) ask(ctx context.Context, c call, at *instance, patience time.Duration) (s said) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer func() {
		name := "none (cut, killed, hung up)"
		if s.status != 0 {
			name = strings.TrimSpace(fmt.Sprintf("%d %s", s.status, s.code))
		}
		w.figures.add(answers, name)
	}()
	request, err := w.request(ctx, c, at)
	if err != nil {
		return said{}
	}
	response, err := callers.Do(request)
	if err != nil {
		return said{}
	}
	defer response.Body.Close()
	var body struct {
		Error struct{ Code telematics.Code }
	}
	if json.NewDecoder(response.Body).Decode(&body) != nil { // whoever hears half an answer has none
		return said{}
	}
	return said{status: response.StatusCode, code: body.Error.Code}
}

func (w *world) request(ctx context.Context, c call, at *instance) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Public+c.path, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	token := w.admin
	if c.client != nil {
		token = c.client.token
		key := w.agencyKeys[c.client.actor.Agency]
		signed := rental.SignedRequest{Method: http.MethodPost, Path: c.path, Body: c.body, Token: token}
		request.Header.Set("X-Agency-Signature", signed.Sign(key.ID, key.Secret, time.Now(), crand.Text()).String())
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Idempotency-Key", c.key)
	if c.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}
