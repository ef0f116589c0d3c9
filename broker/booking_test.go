package broker_test

import (
	"testing"
	"time"

	"motorpool/telematics"
)

func TestEntries_OfAClientsOrderNameItsBooking(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		order := w.named(telematics.Unlock, "k")
		order.Actor, order.Booking = telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}, 17
		for range 2 {
			_, err := w.repeat(0, order)
			w.wantCode(err, "")
		}
		without, refused := healthy(), order
		without.Actions, refused.Idempotency = []telematics.Action{telematics.Lock}, nil
		w.Put(without)
		_, err := w.repeat(0, refused)
		w.wantCode(err, telematics.CommandNotSupported)
		w.wantEntries("", telematics.IdempotencyReplayed, telematics.CommandNotSupported)
		for _, line := range w.Entries() {
			if line.Booking != 17 {
				t.Errorf("entry %+v, want booking 17", line)
			}
		}
	})
}
