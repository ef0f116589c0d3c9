package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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

// answer is what the API says, of one vehicle or of many.
type answer struct {
	Data struct {
		made
		Items []struct {
			Vehicle telematics.VehicleID `json:"vehicle_id"`
			Command *made                `json:"command"`
			Error   *refused             `json:"error"`
		} `json:"items"`
	} `json:"data"`
	Error refused `json:"error"`

	status   int
	replayed bool
}

type made struct {
	ID      telematics.CommandID `json:"id"`
	Outcome telematics.Outcome   `json:"outcome"`
}

type refused struct {
	Code    telematics.Code      `json:"code"`
	Outcome telematics.Outcome   `json:"outcome"`
	Command telematics.CommandID `json:"command_id"`
}

// call makes one HTTP call, and accounts for it whatever comes. An order to many vehicles is a call for each of them, all
// with one request id.
func (w *world) call(ctx context.Context, o order, requestID string, instance int, patience time.Duration) []audit.Call {
	c := audit.Call{
		RequestID: requestID, Key: o.key, Instance: instance, Vehicle: telematics.VehicleID(o.car), Action: o.action, Start: time.Now(),
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said, err := w.post(ctx, o, requestID, instance)
	c.End = time.Now()
	if err == nil { // else the status stays zero: no answer
		c.Status, c.Replayed = said.status, said.replayed
		c.Code, c.Outcome, c.Command = said.Error.Code, said.Error.Outcome, said.Error.Command
	}
	if len(o.more) > 0 {
		return ofMany(c, o, said)
	}
	if said.Data.ID != telematics.NoCommand {
		c.Outcome, c.Command = said.Data.Outcome, said.Data.ID
	}
	return []audit.Call{c}
}

func ofMany(c audit.Call, o order, said answer) []audit.Call {
	var calls []audit.Call
	for _, car := range append([]int{o.car}, o.more...) {
		c.Vehicle = telematics.VehicleID(car)
		calls = append(calls, c)
	}
	for _, item := range said.Data.Items {
		i := slices.IndexFunc(calls, func(c audit.Call) bool { return c.Vehicle == item.Vehicle })
		if i < 0 {
			continue
		}
		if item.Error != nil {
			calls[i].Code, calls[i].Outcome, calls[i].Command = item.Error.Code, item.Error.Outcome, item.Error.Command
		}
		if item.Command != nil {
			calls[i].Outcome, calls[i].Command = item.Command.Outcome, item.Command.ID
		}
	}
	return calls
}

// post returns an error where no whole answer came: whoever hears half of one has none.
func (w *world) post(ctx context.Context, o order, requestID string, instance int) (answer, error) {
	request, err := w.request(ctx, o, requestID, instance)
	if err != nil {
		return answer{}, err
	}
	response, err := callers.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	said := answer{status: response.StatusCode, replayed: response.Header.Get("Idempotency-Replayed") == "true"}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return answer{}, err
	}
	return said, nil
}

func (w *world) request(ctx context.Context, o order, requestID string, instance int) (*http.Request, error) {
	path, body := fmt.Sprintf("vehicles/%d/control/%s", o.car, o.action), ""
	switch {
	case len(o.more) > 0:
		many, err := json.Marshal(map[string]any{"action": o.action, "vehicle_ids": append([]int{o.car}, o.more...)})
		if err != nil {
			return nil, err
		}
		path, body = "commands", string(many)
	case o.action == telematics.AttentionSignal:
		body = `{"signal":"lights","duration_ms":200}`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.instances[instance].callers+"/api/v1/admin/"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
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
	return request, nil
}
