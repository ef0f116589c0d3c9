package failover

import (
	"context"
	"strings"
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// pace is the interval between two commands to one vehicle: while the standby is behind, fewer are
// executed than a report repeats [TEL-3].
const pace = 500 * time.Millisecond

// sendCommands sends commands until a time. It returns the number of calls by answer when all are
// answered.
func (r *round) sendCommands(ctx context.Context, until time.Time) map[string]int {
	calls := r.fleet.LockAndUnlock(ctx, func(id telematics.VehicleID, action telematics.Action, n int) (c world.PlainCall, made bool) {
		wait := pace
		if n == 0 {
			wait = pace * time.Duration(id) / time.Duration(r.Vehicles) // spread
		}
		if world.Pause(ctx, wait); !time.Now().Before(until) {
			return c, false
		}
		return r.fleet.Call(ctx, world.Callers, r.Running[n%len(r.Running)].Public, id, action), true
	})
	return verdict.Count(calls, func(c world.PlainCall) string {
		if c.Answer == world.NoAnswer {
			return c.Answer
		}
		return strings.TrimSpace(c.Answer + " " + c.Reason)
	})
}
