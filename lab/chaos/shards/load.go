package shards

import (
	"context"

	"motorpool/simulator/world"
	"motorpool/telematics"
)

// inProgress is the answer to a command that was refused because another one is open.
const inProgress = "409 " + string(telematics.CommandInProgress)

// load sends commands without a pause, at both instances, until all of the round have begun.
func (r *round) load(ctx context.Context) []world.PlainCall {
	return r.fleet.LockAndUnlock(ctx, func(id telematics.VehicleID, action telematics.Action, n int) (c world.PlainCall, made bool) {
		if r.begun.Add(1) > int64(r.Commands) {
			return c, false
		}
		return r.fleet.Call(ctx, world.Callers, r.Running[(int(id)+n)%instances].Public, id, action), true
	})
}
