package broker_test

import (
	"context"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

// staleCache is a store whose cache still says that a vehicle is offline.
type staleCache struct{ broker.Vehicles }

func (o staleCache) Resolve(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	twin, err := o.Vehicles.Resolve(ctx, id)
	twin.Contact = telematics.Contact{Status: telematics.Offline, ChangedAt: time.Now().Add(-time.Hour)}
	return twin, err
}

func TestSend_VehicleThatIsOnlineAgainGetsItThoughTheCacheSaysOffline(t *testing.T) {
	behind := func(_ *brokertest.Memory, c *broker.Config) { c.Vehicles = staleCache{c.Vehicles} }
	inWorldOf(t, []wiring{behind}, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		// One of the two actions depends on the vehicle's state.
		for _, action := range []telematics.Action{telematics.Lock, telematics.Unlock} {
			_, err := w.send(action)
			w.wantCode(err, "")
		}
	})
}
