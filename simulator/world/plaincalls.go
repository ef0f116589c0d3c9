package world

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"motorpool/telematics"
)

// callTimeout is longer than any command may take.
const callTimeout = telematics.MaxBudget + 10*time.Second

// PlainCall is a command to a vehicle of a plain fleet, as its caller saw it.
type PlainCall struct {
	Vehicle telematics.VehicleID
	Begin   time.Time
	Took    time.Duration
	Answer  string               // status, and the code of the error
	Reason  string               // of an error, or why there is no answer
	Outcome telematics.Outcome   // as answered; empty: not said
	Command telematics.CommandID // zero: the answer names none
}

const (
	// Executed is the answer to a command that the vehicle executed.
	Executed = "200"
	// NoAnswer is in the place of an answer that did not come.
	NoAnswer = "no answer"
)

// Call locks or unlocks a vehicle, and returns within callTimeout.
func (f *PlainFleet) Call(
	ctx context.Context, client *http.Client, url string, id telematics.VehicleID, action telematics.Action,
) (c PlainCall) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c = PlainCall{Vehicle: id, Begin: time.Now(), Answer: NoAnswer}
	defer func() { c.Took = time.Since(c.Begin) }()
	request, err := Post(ctx, fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", url, id, action), f.Token, nil)
	if err != nil {
		return c
	}
	var body struct {
		Data  struct{ ID telematics.CommandID }
		Error struct {
			Code, Reason string
			Outcome      telematics.Outcome
			CommandID    telematics.CommandID `json:"command_id"`
		}
	}
	status, _, err := Call(client, request, &body)
	switch e := body.Error; {
	case err != nil:
		c.Reason = err.Error()
	case status == http.StatusOK:
		c.Answer, c.Outcome, c.Command = Executed, telematics.Executed, body.Data.ID
	default:
		c.Answer, c.Reason, c.Outcome, c.Command = strings.TrimSpace(fmt.Sprintf("%d %s", status, e.Code)), e.Reason, e.Outcome, e.CommandID
	}
	return c
}

// LockAndUnlock runs one caller for each vehicle, concurrently. Each calls call alternately with
// lock and unlock, and the number of the call to that vehicle, until it returns false.
// LockAndUnlock returns all calls.
func (f *PlainFleet) LockAndUnlock(
	ctx context.Context, call func(id telematics.VehicleID, action telematics.Action, n int) (PlainCall, bool),
) []PlainCall {
	var mu sync.Mutex
	var all []PlainCall
	var callers sync.WaitGroup
	for _, v := range f.File.Vehicles {
		callers.Go(func() {
			actions := []telematics.Action{telematics.Lock, telematics.Unlock}
			for n := 0; ctx.Err() == nil; n++ {
				one, made := call(v.ID, actions[n%2], n)
				if !made {
					return
				}
				mu.Lock()
				all = append(all, one)
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return all
}
