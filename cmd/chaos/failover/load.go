package failover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"motorpool/cmd/internal/world"
	"motorpool/telematics"
)

// pace is between two commands to one vehicle: while the standby is behind, fewer are executed than
// a report repeats [TEL-3].
const pace = 500 * time.Millisecond

const callTimeout = 15 * time.Second

// sendCommands locks and unlocks every vehicle alternately until a time. It returns the number of
// calls by answer when all are answered.
func (r *round) sendCommands(ctx context.Context, until time.Time) map[string]int {
	var mu sync.Mutex
	answers := map[string]int{}
	var vehicles sync.WaitGroup
	for vehicle := 1; vehicle <= r.Vehicles; vehicle++ {
		vehicles.Go(func() {
			actions := []telematics.Action{telematics.Lock, telematics.Unlock}
			world.Pause(ctx, pace*time.Duration(vehicle)/time.Duration(r.Vehicles)) // spread
			for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
				answer := r.call(ctx, vehicle, actions[n%2], n%len(r.Running))
				mu.Lock()
				answers[answer]++
				mu.Unlock()
				world.Pause(ctx, pace)
			}
		})
	}
	vehicles.Wait()
	return answers
}

// call sends one command, and returns the code of the answer.
func (r *round) call(ctx context.Context, vehicle int, action telematics.Action, instance int) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	address := fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", r.Running[instance].Public, vehicle, action)
	request, err := world.Post(ctx, address, r.fleet.Token, nil)
	if err != nil {
		return err.Error()
	}
	var body struct {
		Error struct{ Code, Reason string }
	}
	status, _, err := world.Call(world.Callers, request, &body)
	if err != nil {
		return "no answer"
	}
	if body.Error.Code == "" {
		return fmt.Sprint(status)
	}
	return fmt.Sprintf("%d %s %s", status, body.Error.Code, body.Error.Reason)
}
