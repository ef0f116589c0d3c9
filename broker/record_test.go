package broker_test

import (
	"context"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

// overtaken is a record whose cache does not say yet that a vehicle is back.
type overtaken struct{ broker.Vehicles }

func (o overtaken) Resolve(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	twin, err := o.Vehicles.Resolve(ctx, id)
	twin.Contact = telematics.Contact{Status: telematics.Offline, ChangedAt: time.Now().Add(-time.Hour)}
	return twin, err
}

func TestSend_VehicleThatIsOnlineAgainGetsItBeforePostgresKnows(t *testing.T) {
	behind := func(_ *brokertest.Memory, c *broker.Config) { c.Vehicles = overtaken{c.Vehicles} }
	inWorldOf(t, []wiring{behind}, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		// One of the two is conditional.
		for _, action := range []telematics.Action{telematics.Lock, telematics.Unlock} {
			_, err := w.send(action)
			w.wantCode(err, "")
		}
	})
}
