package rollout

import (
	"context"
	"net/http"

	"motorpool/simulator/world"
	"motorpool/telematics"
)

// load sends commands without a pause, until the end.
func (r *round) load(ctx context.Context, end <-chan struct{}) []world.PlainCall {
	clients := map[telematics.VehicleID]*http.Client{}
	for _, v := range r.fleet.File.Vehicles {
		clients[v.ID] = r.client(int(v.ID))
		defer clients[v.ID].CloseIdleConnections()
	}
	return r.fleet.LockAndUnlock(ctx, func(id telematics.VehicleID, action telematics.Action, _ int) (c world.PlainCall, made bool) {
		select {
		case <-end:
			return c, false
		default:
			return r.fleet.Call(ctx, clients[id], r.public, id, action), true
		}
	})
}
