package broker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/signing"
)

func TestRegister_RunsConcurrentlyWithTheClaim(t *testing.T) {
	const trip = time.Second
	x := &tampering{}
	x.register = func(p delivery.Pending) error {
		time.Sleep(trip)
		return x.PendingTable.Register(p)(context.Background())
	}
	x.claim = func(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
		time.Sleep(trip)
		return x.Commands.Claim(ctx, &c)
	}
	inWorldOf(t, between(x), func(w *world) {
		w.answers(0, 0, telematics.Succeeded)
		asked := time.Now()
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if took := time.Since(asked); took >= 2*trip {
			t.Errorf("took %v, want less than both steps one after the other", took)
		}
	})
}

func TestRegister_NothingIsPublishedBefore(t *testing.T) {
	x := &tampering{}
	var registered time.Time
	x.register = func(p delivery.Pending) error {
		time.Sleep(time.Second)
		registered = time.Now()
		return x.PendingTable.Register(p)(context.Background())
	}
	inWorldOf(t, between(x), func(w *world) {
		w.answers(0, 0, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if sent := w.mqtt.published(); len(sent) != 1 || registered.IsZero() || sent[0].at.Before(registered) {
			t.Errorf("published %v, registered at %v; want one message after the registration", sent, registered)
		}
	})
}

func TestRegister_IsUndoneForACommandThatCannotBeSigned(t *testing.T) {
	x := &tampering{}
	x.register = func(p delivery.Pending) error {
		time.Sleep(time.Second)
		return x.PendingTable.Register(p)(context.Background())
	}
	inWorldOf(t, between(x), func(w *world) {
		w.start(x.wire, signing.Key{})
		synctest.Wait()
		_, err := w.sendVia(1, w.order(telematics.Lock))
		w.wantCode(err, telematics.TelematicsUnavailable)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.EqualSlices(t, w.Pending.InFlight(), nil, "still registered")
	})
}
