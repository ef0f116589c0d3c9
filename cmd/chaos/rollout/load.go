package rollout

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
	answer  string
	command telematics.CommandID // zero: the answer names none
	took    time.Duration
}

// load locks and unlocks every vehicle alternately, without a pause, until the end.
func (r *round) load(ctx context.Context, end <-chan struct{}) []call {
	var mu sync.Mutex
	var all []call
	var vehicles sync.WaitGroup
	for vehicle := 1; vehicle <= r.Vehicles; vehicle++ {
		vehicles.Go(func() {
			client := r.client(vehicle)
			defer client.CloseIdleConnections()
			actions := []telematics.Action{telematics.Lock, telematics.Unlock}
			for n := 0; ctx.Err() == nil; n++ {
				select {
				case <-end:
					return
				default:
				}
				one := r.call(ctx, client, vehicle, actions[n%2])
				mu.Lock()
				all = append(all, one)
				mu.Unlock()
			}
		})
	}
	vehicles.Wait()
	return all
}

// answered is the answer to a command that the vehicle executed.
const answered = "200"

func (r *round) call(ctx context.Context, client *http.Client, vehicle int, action telematics.Action) (c call) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	begin := time.Now()
	defer func() { c.took = time.Since(begin) }()
	request, err := world.Post(ctx, fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", r.public, vehicle, action), r.fleet.Token, nil)
	if err != nil {
		return call{answer: err.Error()}
	}
	var body struct {
		Data  struct{ ID uuid.UUID }
		Error struct{ Code string }
	}
	status, _, err := world.Call(client, request, &body)
	if err != nil {
		return call{answer: "no answer: " + err.Error()}
	}
	if body.Error.Code != "" {
		return call{answer: fmt.Sprintf("%d %s", status, body.Error.Code)}
	}
	return call{answer: fmt.Sprint(status), command: body.Data.ID}
}
