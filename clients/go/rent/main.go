// Command rent rents a vehicle of a Motorpool installation as a client's app does: it finds the
// nearest one, asks for its price, reserves it, starts, pauses, resumes and ends the rental. It
// needs the standard library alone: copy it. With make dev running:
//
//	set -a; source .dev/env; set +a
//	go run ./clients/go/rent
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

// client calls /api/v1/client for one client of one agency.
type client struct {
	base, token, keyID string
	secret             []byte
	http               http.Client
}

// refusal is what the service answers instead of a result.
type refusal struct {
	Code       string
	Retryable  bool
	RetryAfter float64 `json:"retry_after"`
	Outcome    string
	Checks     []struct {
		Name, Expected, Reported string
		OK                       bool
	}
	Message string // for people
}

func (r *refusal) Error() string { return r.Code + ": " + r.Message }

// answer is a response: its data, and with 202 the path of the transition that goes on.
type answer struct {
	Data     json.RawMessage
	location string
}

// transition is a start, pause, resume or end of a rental.
type transition struct {
	State, Step string
	Next        []string
	Error       *refusal
}

// patience is for how long a request is repeated, and a transition followed.
const patience = 2 * time.Minute

func main() {
	log.SetFlags(0)
	secret, err := hex.DecodeString(os.Getenv("AGENCY_SECRET"))
	if err != nil {
		log.Fatal("AGENCY_SECRET: ", err)
	}
	c := &client{
		base: os.Getenv("BASE_URL"), token: os.Getenv("CLIENT_TOKEN"), keyID: os.Getenv("AGENCY_KEY_ID"), secret: secret,
		http: http.Client{Timeout: 45 * time.Second}, // the service waits up to 30 s for a vehicle
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := c.rent(ctx); err != nil {
		log.Fatal(err)
	}
}

// rent rents the vehicle that is nearest to the Münchner Freiheit for an hour.
func (c *client) rent(ctx context.Context) error {
	var found []struct {
		ID       int64
		Distance float64 `json:"distance_m"`
	}
	if err := c.call(ctx, http.MethodGet, "vehicles?latitude=48.1619&longitude=11.5864&radius_m=2000", nil, &found); err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no vehicle is free within 2 km")
	}
	now := time.Now().UTC()
	wanted := map[string]any{"vehicle_id": found[0].ID, "start_date": now, "end_date": now.Add(time.Hour)}
	var quote struct {
		ID      string
		Pricing struct {
			RentalTotal json.Number `json:"rental_total"`
			Currency    string
		}
	}
	if err := c.call(ctx, http.MethodPost, "quotes", wanted, &quote); err != nil {
		return err
	}
	var booking struct {
		ID                int64
		Reference, Status string
	}
	if err := c.call(ctx, http.MethodPost, "bookings", map[string]any{"quote_id": quote.ID}, &booking); err != nil {
		return err
	}
	log.Printf("%s: vehicle %d, %.0f m away, %s %s",
		booking.Reference, found[0].ID, found[0].Distance, quote.Pricing.RentalTotal, quote.Pricing.Currency)
	for _, kind := range []string{"start", "pause", "resume", "end"} {
		if err := c.move(ctx, booking.ID, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if err := c.call(ctx, http.MethodGet, fmt.Sprintf("bookings/%d", booking.ID), nil, &booking); err != nil {
		return err
	}
	log.Printf("%s is %s", booking.Reference, booking.Status)
	return nil
}

// move starts, pauses, resumes or ends a rental, and returns once the vehicle has done it.
func (c *client) move(ctx context.Context, booking int64, kind string) error {
	sent, err := c.send(ctx, http.MethodPost, fmt.Sprintf("/api/v1/client/bookings/%d/%s", booking, kind), nil)
	if err != nil || sent.location == "" {
		return err
	}
	for location, end := sent.location, time.Now().Add(patience); ; {
		var t transition
		if err := json.Unmarshal(sent.Data, &t); err != nil {
			return err
		}
		switch {
		case t.State == "done":
			return nil
		case t.State == "failed" && t.Error != nil:
			return t.Error
		case t.State == "failed" || time.Now().After(end):
			return fmt.Errorf("the transition is %s, step %s; the client can %v", t.State, t.Step, t.Next)
		}
		pause(ctx, time.Second)
		if sent, err = c.send(ctx, http.MethodGet, location, nil); err != nil {
			return err
		}
	}
}

// call sends a request, with a body unless that is nil, and decodes the data of the answer.
func (c *client) call(ctx context.Context, method, path string, body, into any) error {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	a, err := c.send(ctx, method, "/api/v1/client/"+path, encoded)
	if err != nil {
		return err
	}
	return json.Unmarshal(a.Data, into)
}

// send repeats a request while it is not answered, or may be repeated: with the same key, so that
// nothing is done twice, and signed anew, as a signature is good for one request.
func (c *client) send(ctx context.Context, method, path string, body []byte) (answer, error) {
	key := rand.Text()
	for end := time.Now().Add(patience); ; {
		a, wait, err := c.attempt(ctx, method, path, key, body)
		if err == nil || wait == 0 || time.Now().Add(wait).After(end) || ctx.Err() != nil {
			return a, err
		}
		pause(ctx, wait)
	}
}

// attempt returns after what time the request may be sent again; 0: it must not be.
func (c *client) attempt(ctx context.Context, method, path, key string, body []byte) (a answer, wait time.Duration, err error) {
	const backoff = time.Second
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return a, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("X-Agency-Signature", c.sign(method, path, body))
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPost {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return a, backoff, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, backoff, err
	}
	var envelope struct {
		Success bool
		Message string
		Data    json.RawMessage
		Error   *refusal
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return a, backoff, fmt.Errorf("status %d, not of the service: %w", response.StatusCode, err)
	}
	if r := envelope.Error; r != nil {
		r.Message = envelope.Message
		// What a person must mend is not repeated, nor what the vehicle may have done.
		if r.Retryable && r.Outcome != "unknown" && len(r.Checks) == 0 {
			wait = max(time.Duration(r.RetryAfter*float64(time.Second)), backoff)
		}
		return a, wait, r
	}
	if !envelope.Success { // of a gateway
		return a, backoff, fmt.Errorf("status %d, not of the service", response.StatusCode)
	}
	a.Data = envelope.Data
	if response.StatusCode == http.StatusAccepted {
		a.location = response.Header.Get("Location")
	}
	return a, 0, nil
}

// sign returns X-Agency-Signature: docs/http.md#agency-signature.
func (c *client) sign(method, target string, body []byte) string {
	path, query, _ := strings.Cut(target, "?")
	now, nonce := fmt.Sprint(time.Now().Unix()), rand.Text()
	digest := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	mac := hmac.New(sha256.New, c.secret)
	mac.Write([]byte(strings.Join([]string{"v1", now, nonce, method, path, query, digest(body), digest([]byte(c.token))}, "\n")))
	return fmt.Sprintf("k=%s,t=%s,n=%s,v1=%x", c.keyID, now, nonce, mac.Sum(nil))
}

// pause waits, or returns early when the context ends: the next request then fails.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
