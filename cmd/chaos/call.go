package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/telematics"
)

// callTimeout is the caller's own, above every budget.
const callTimeout = 25 * time.Second

// callers is one HTTP client for all. It opens a connection for each call: a client that keeps them sends a request with
// an Idempotency-Key again by itself when its connection breaks, and the account would miss a call.
var callers = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

type answer struct {
	Data struct {
		ID      telematics.CommandID `json:"id"`
		Outcome telematics.Outcome   `json:"outcome"`
	} `json:"data"`
	Error struct {
		Code    telematics.Code      `json:"code"`
		Outcome telematics.Outcome   `json:"outcome"`
		Command telematics.CommandID `json:"command_id"`
	} `json:"error"`
}

// call makes one HTTP call, and accounts for it whatever comes.
func (w *world) call(ctx context.Context, o order, requestID string, instance int, patience time.Duration) audit.Call {
	c := audit.Call{
		RequestID: requestID, Key: o.key, Instance: instance, Vehicle: telematics.VehicleID(o.car), Action: o.action, Start: time.Now(),
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, replayed, said, err := w.post(ctx, o, requestID, instance)
	c.End = time.Now()
	if err != nil {
		return c // no answer: the status stays zero
	}
	c.Status, c.Replayed = status, replayed
	c.Code, c.Outcome, c.Command = said.Error.Code, said.Error.Outcome, said.Error.Command
	if said.Data.ID != telematics.NoCommand {
		c.Outcome, c.Command = said.Data.Outcome, said.Data.ID
	}
	return c
}

func (w *world) post(ctx context.Context, o order, requestID string, instance int) (status int, replayed bool, said answer, err error) {
	body := ""
	if o.action == telematics.AttentionSignal {
		body = `{"signal":"lights","duration_ms":200}`
	}
	url := fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", w.instances[instance].callers, o.car, o.action)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, false, said, err
	}
	request.Header.Set("Authorization", "Bearer "+w.admin)
	request.Header.Set("X-Request-ID", requestID)
	for name, value := range map[string]string{"Idempotency-Key": o.key, "Prefer": o.prefer} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := callers.Do(request)
	if err != nil {
		return 0, false, said, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return 0, false, said, err // cut off in the middle: whoever hears half an answer has none
	}
	return response.StatusCode, response.Header.Get("Idempotency-Replayed") == "true", said, nil
}
