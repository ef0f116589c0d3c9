package broker_test

import (
	"context"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// What an order needs is checked once its command has the lane: a command of the same lane cannot
// change it any more.
func TestSend_OrderThatIsNotAllowedAnyMoreIsNotPublished(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		order := w.order(telematics.Unlock)
		order.Allowed = func(context.Context) error {
			return &telematics.Error{Code: "booking_not_active", Message: "The booking has ended."}
		}
		c, err := w.sendVia(0, order)
		w.wantCode(err, "booking_not_active")
		if err.Outcome != telematics.NotExecuted || err.Command != c.ID || c.State != telematics.Expired {
			t.Errorf("error %+v, command %s; want it not executed, and expired", err, c.State)
		}
		assert.Equal(t, len(w.mqtt.published()), 0, "messages published")
		if is := w.record(c.ID); is.State != telematics.Expired || is.Attempts != 0 {
			t.Errorf("recorded %+v, want expired without an attempt", is)
		}
		order.Allowed = func(context.Context) error { return nil }
		_, err = w.sendVia(0, order)
		w.wantCode(err, "")
	})
}
