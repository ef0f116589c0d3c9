package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"motorpool/internal/world"
	"motorpool/lab/chaos/audit"
	"motorpool/telematics"
)

// callTimeout is longer than every budget.
const callTimeout = 25 * time.Second

// answer is an answer of the API, about one vehicle or many.
type answer struct {
	Data struct {
		commandData
		Items []struct {
			Vehicle telematics.VehicleID `json:"vehicle_id"`
			Command *commandData         `json:"command"`
			Error   *errorData           `json:"error"`
		} `json:"items"`
	} `json:"data"`
	Error errorData `json:"error"`

	status   int
	replayed bool
}

type commandData struct {
	ID      telematics.CommandID `json:"id"`
	Outcome telematics.Outcome   `json:"outcome"`
}

type errorData struct {
	Code    telematics.Code      `json:"code"`
	Outcome telematics.Outcome   `json:"outcome"`
	Command telematics.CommandID `json:"command_id"`
}

// call makes one HTTP call, and returns a record of it in every case. An order to many vehicles is
// a call for each of them, all with one request id.
func (r *round) call(ctx context.Context, o order, requestID string, instance int, timeout time.Duration) []audit.Call {
	c := audit.Call{
		RequestID: requestID, Key: o.key, Instance: instance, Vehicle: telematics.VehicleID(o.car), Action: o.action, Start: time.Now(),
		Patience: o.patience(timeout),
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := r.post(ctx, o, requestID, instance)
	c.End = time.Now()
	if err == nil { // else the status stays zero: no answer
		c.Status, c.Replayed = a.status, a.replayed
		c.Code, c.Outcome, c.Command = a.Error.Code, a.Error.Outcome, a.Error.Command
	}
	if len(o.more) > 0 {
		return callsToMany(c, o, a)
	}
	if a.Data.ID != telematics.NoCommand {
		c.Outcome, c.Command = a.Data.Outcome, a.Data.ID
	}
	return []audit.Call{c}
}

func callsToMany(c audit.Call, o order, a answer) []audit.Call {
	var calls []audit.Call
	for _, car := range append([]int{o.car}, o.more...) {
		c.Vehicle = telematics.VehicleID(car)
		calls = append(calls, c)
	}
	for _, item := range a.Data.Items {
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

// post returns an error if no complete answer came.
func (r *round) post(ctx context.Context, o order, requestID string, instance int) (answer, error) {
	request, err := r.request(ctx, o, requestID, instance)
	if err != nil {
		return answer{}, err
	}
	var a answer
	status, header, err := world.Call(world.Callers, request, &a)
	if err != nil {
		return answer{}, err
	}
	a.status, a.replayed = status, header.Get("Idempotency-Replayed") == "true"
	return a, nil
}

func (r *round) request(ctx context.Context, o order, requestID string, instance int) (*http.Request, error) {
	path, body := fmt.Sprintf("vehicles/%d/control/%s", o.car, o.action), []byte(nil)
	switch {
	case len(o.more) > 0:
		path = "commands"
		// Plain values cannot fail to encode.
		body, _ = json.Marshal(map[string]any{"action": o.action, "vehicle_ids": append([]int{o.car}, o.more...)})
	case o.action == telematics.AttentionSignal:
		body, _ = json.Marshal(map[string]any{"signal": audit.Signal.Signal, "duration_ms": audit.Signal.Duration.Milliseconds()})
	}
	request, err := world.Post(ctx, r.public[instance]+"/api/v1/admin/"+path, r.admin, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Request-ID", requestID)
	for name, value := range map[string]string{"Idempotency-Key": o.key, "Prefer": o.prefer} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	return request, nil
}
