package broker_test

import (
	"context"
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// named returns an order with an idempotency key.
func (w *world) named(action telematics.Action, key string) delivery.Order {
	order := w.order(action)
	order.Idempotency = &telematics.IdempotencyKey{Subject: admin.Subject, Key: key, Fingerprint: sha256.Sum256([]byte(action))}
	return order
}

func (w *world) repeat(instance int, order delivery.Order) (delivery.Receipt, *telematics.Error) {
	w.Helper()
	r, err := w.brokers[instance].Send(w.Context(), &order)
	refused, _ := err.(*telematics.Error) //nolint:errorlint // the broker returns nothing else
	return r, refused
}

func TestRepeat_ReturnsTheFirstCommand(t *testing.T) {
	for state, code := range map[telematics.State]telematics.Code{
		telematics.Succeeded: "", telematics.Failed: telematics.CommandFailed,
	} {
		inWorld(t, 2, func(w *world) {
			w.answers(0, time.Second, state)
			first, err := w.repeat(0, w.named(telematics.Lock, "k"))
			w.wantCode(err, code)
			for instance := range 2 {
				start := time.Now()
				again, err := w.repeat(instance, w.named(telematics.Lock, "k"))
				w.wantCode(err, code)
				if !again.Replayed || again.Command.ID != first.Command.ID || again.Command.State != state || time.Since(start) != 0 {
					t.Errorf("%s: the repeated order: %+v, want the first command immediately", state, again)
				}
			}
			assert.Equal(t, len(w.mqtt.published()), 1, "messages published")
			w.wantEntries(code, telematics.IdempotencyReplayed, telematics.IdempotencyReplayed)
			for _, line := range w.Entries()[1:] {
				if line.Command != first.Command.ID || line.Outcome != telematics.Undecided {
					t.Errorf("entry %+v, want the first command, undecided", line)
				}
			}
		})
	}
}

func TestRepeat_ReturnsThatTheFirstOrderIsOpen(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.answers(0, 5*time.Second, telematics.Succeeded)
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = w.repeat(0, w.named(telematics.Lock, "k")) })
		time.Sleep(time.Second)
		again, err := w.repeat(1, w.named(telematics.Lock, "k"))
		w.wantCode(err, telematics.IdempotencyInProgress)
		if again.Replayed || err.Command == telematics.NoCommand || err.RetryAfter != time.Second || !err.Retryable {
			t.Errorf("error %+v, want the open command, retry after 1 s", err)
		}
		callers.Wait()
		w.wantEntries(telematics.IdempotencyInProgress, "")
		if line := w.Entries()[0]; line.Latency != 0 || line.Outcome != telematics.Undecided || line.Command != err.Command {
			t.Errorf("entry %+v, want the command without its latency and outcome", line)
		}
	})
}

func TestRepeat_KeyWithAnotherRequestIsRefused(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 0, telematics.Succeeded)
		_, err := w.repeat(0, w.named(telematics.Lock, "k"))
		w.wantCode(err, "")
		_, err = w.repeat(0, w.named(telematics.Unlock, "k"))
		w.wantCode(err, telematics.IdempotencyMismatch)
	})
}

func TestStart_TheCommandRunsConcurrently(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 2*time.Second, telematics.Succeeded)
		ctx, hangUp := context.WithCancel(w.Context())
		order := w.named(telematics.Lock, "k")
		start := time.Now()
		r, err := w.brokers[0].Start(ctx, &order)
		hangUp()
		if err != nil || r.Command.State != telematics.Accepted || time.Since(start) != 0 {
			t.Fatalf("Start = %+v, %v", r, err)
		}
		again, err := w.brokers[0].Start(w.Context(), &order)
		if err != nil || !again.Replayed || again.Command.ID != r.Command.ID {
			t.Errorf("the repeated order: %+v, %v; want the first command", again, err)
		}
		require.NoError(t, w.brokers[0].Drain(w.Context()))
		if c := w.record(r.Command.ID); c.State != telematics.Succeeded || time.Since(start) != 2*time.Second {
			t.Errorf("after %v: %+v; want succeeded after 2 s", time.Since(start), c)
		}
	})
}

func TestDrain_EndsWithItsContext(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		if _, err := w.brokers[0].Start(w.Context(), new(w.order(telematics.Lock))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := w.brokers[0].Drain(ctx); err == nil {
			t.Error("Drain returned while a command was in flight")
		}
		assert.NoError(t, w.brokers[0].Drain(w.Context()))
	})
}

// A bulk order may name a thousand vehicles that do not exist: its caller adds one entry for all of
// them.
func TestBulk_UnknownVehicleHasNoSeparateEntry(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		order := w.order(telematics.Lock)
		order.Vehicle, order.Bulk = 7, uuid.New()
		_, err := w.brokers[0].Start(w.Context(), &order)
		refused, _ := err.(*telematics.Error) //nolint:errorlint // the broker returns nothing else
		w.wantCode(refused, telematics.VehicleNotFound)
		w.wantEntries()
		w.brokers[0].Omit(w.Context(), telematics.Activity{})
		w.wantEntries()
		assert.Equal(t, metric(t, w.brokers[0], "motorpool_refusals_not_recorded_total"), 1, "refusals counted as not recorded")
	})
}

func TestSend_KeyUsedSinceItsLookupIsFoundByTheClaim(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		order := w.named(telematics.Lock, "k")
		order.Lookup = &delivery.KeyLookup{}
		first, err := w.repeat(0, order)
		w.wantCode(err, "")
		again, err := w.repeat(1, order)
		w.wantCode(err, "")
		if first.Replayed || !again.Replayed || again.Command.ID != first.Command.ID || len(w.mqtt.published()) != 1 {
			t.Errorf(
				"first %+v, repeated %+v, %d messages; want the first command repeated, 1 message", first, again,
				len(w.mqtt.published()),
			)
		}
		order.Lookup = &delivery.KeyLookup{
			Found:  true,
			Result: delivery.KeyResult{Fingerprint: order.Idempotency.Fingerprint, Command: *first.Command},
		}
		if again, err := w.repeat(1, order); err != nil || !again.Replayed || again.Command.ID != first.Command.ID {
			t.Errorf("found by the lookup: %+v, %v; want the first command", again, err)
		}
		order.Lookup.Result.Fingerprint[0]++
		_, err = w.repeat(1, order)
		w.wantCode(err, telematics.IdempotencyMismatch)
	})
}
