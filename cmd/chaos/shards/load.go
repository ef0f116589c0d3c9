package shards

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"motorpool/cmd/internal/world"
	"motorpool/telematics"
)

// callTimeout is longer than any command may take.
const callTimeout = telematics.MaxBudget + 10*time.Second

// call is one command as its caller saw it.
type call struct {
	vehicle telematics.VehicleID
	begin   time.Time
	took    time.Duration
	answer  string               // status, and the code of the error
	outcome telematics.Outcome   // as answered; empty: not said
	command telematics.CommandID // zero: the answer names none
}

// load locks and unlocks every vehicle alternately, without a pause, at both instances, until all
// commands of the round have begun.
func (r *round) load(ctx context.Context) []call {
	var mu sync.Mutex
	var all []call
	var callers sync.WaitGroup
	for id := 1; id <= r.Vehicles; id++ {
		callers.Go(func() {
			actions := []telematics.Action{telematics.Lock, telematics.Unlock}
			for n := 0; ctx.Err() == nil && r.begun.Add(1) <= int64(r.Commands); n++ {
				one := r.call(ctx, telematics.VehicleID(id), actions[n%2], (id+n)%instances)
				mu.Lock()
				all = append(all, one)
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return all
}

const (
	// executed is the answer to a command that the vehicle executed.
	executed = "200"
	// inProgress is the answer to a command that was refused because another one is open.
	inProgress = "409 " + string(telematics.CommandInProgress)
)

func (r *round) call(ctx context.Context, vehicle telematics.VehicleID, action telematics.Action, instance int) (c call) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c = call{vehicle: vehicle, begin: time.Now()}
	defer func() { c.took = time.Since(c.begin) }()
	request, err := world.Post(ctx, fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", r.Running[instance].Public, vehicle, action), r.fleet.Token, nil)
	if err != nil {
		c.answer = err.Error()
		return c
	}
	var body struct {
		Data  struct{ ID uuid.UUID }
		Error struct {
			Code      string
			Outcome   telematics.Outcome
			CommandID uuid.UUID `json:"command_id"`
		}
	}
	status, _, err := world.Call(world.Callers, request, &body)
	switch {
	case err != nil:
		c.answer = "no answer"
	case status == http.StatusOK:
		c.answer, c.outcome, c.command = executed, telematics.Executed, body.Data.ID
	default:
		c.answer, c.outcome, c.command = fmt.Sprintf("%d %s", status, body.Error.Code), body.Error.Outcome, body.Error.CommandID
	}
	return c
}
