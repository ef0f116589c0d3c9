package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// broken is a dialect whose codec panics.
type broken struct{ telematics.Dialect }

func (broken) DecodeAnswer(telematics.Message, time.Time) (telematics.Answer, []telematics.Dropped, error) {
	panic("answer")
}
func (broken) DecodePresence(telematics.Message, time.Time) (telematics.Presence, error) {
	panic("presence")
}
func (broken) DecodeReport(telematics.Message, time.Time) (telematics.Report, []telematics.Dropped, error) {
	panic("report")
}
func (broken) Encode(*telematics.Command, telematics.Signer) (telematics.Transmission, error) {
	panic("command")
}

// A panic drops what was being handled: the instance lives, and handles the next.
func TestPanic_DropsOneMessageAndTheNextIsHandled(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		b := w.brokers[0]
		for _, receive := range []func(telematics.Message){b.Answer, b.Report, func(m telematics.Message) { b.Presence(m) }} {
			m := brokertest.Said(unit, []byte(`{}`), false)
			m.Dialect = broken{m.Dialect}
			receive(m)
		}
		time.Sleep(time.Second)
		w.wantCount("motorpool_panics_total", 3)
		w.wantCount(`motorpool_reports_merged_total`, 0)
		b.Report(brokertest.Said(unit, []byte(`{"sent_at":"2026-01-02T10:00:00Z","motion":{"speed_kmh":5}}`), false))
		time.Sleep(time.Second)
		w.wantCount(`motorpool_reports_merged_total`, 1)
	})
}

// A codec that panics while a command is signed refuses that command alone.
func TestPanic_WhileSigningRefusesTheCommand(t *testing.T) {
	inWorldOf(t, []wiring{func(_ *brokertest.Memory, c *broker.Config) {
		c.Dialects = telematics.Dialects{broken{c.Dialects[len(c.Dialects)-1]}}
		for _, d := range spoken {
			if d.Protocol() == telematics.DefaultProtocol {
				c.Dialects = telematics.Dialects{broken{d}}
			}
		}
	}}, func(w *world) {
		_, err := w.brokers[0].Send(t.Context(), &delivery.Order{Vehicle: car, Action: telematics.Lock, Actor: admin})
		var refusal *telematics.Error
		if !errors.As(err, &refusal) || refusal.Outcome != telematics.NotExecuted {
			t.Errorf("Send = %v, want it not executed", err)
		}
		w.wantCount("motorpool_panics_total", 1)
	})
}

// What Postgres does not take at shutdown is counted, and logged with its command.
func TestShutdown_LostSettlementIsCountedAndNamed(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.Break(errors.New("postgres is down"), "Settle")
		_, err := w.brokers[0].Send(t.Context(), &delivery.Order{Vehicle: car, Action: telematics.Lock, Actor: admin})
		if err == nil {
			t.Fatal("the command was executed")
		}
		w.stops[0]()
		w.stops = nil
		w.wantCount(`motorpool_dropped_total{kind="settlement", reason="not_stored"}`, 1)
		if log := w.log.String(); !strings.Contains(log, `msg="settlement lost" command=`) {
			t.Errorf("the log does not name the command: %s", log)
		}
	})
}

// A loop that panics is counted, and goes on after a pause: it panics a second time.
func TestPanic_OfALoopIsCountedAndItGoesOn(t *testing.T) {
	for _, method := range []string{"Halts", "Time", "Updates", "Overdue", "Unconfirmed", "Aged", "StoreUnknownUnits"} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.mqtt.car = func(publication) {} // so that the record is polled
				for n := range int64(2) {
					w.brokers[0].Report(brokertest.Said("unknown-unit", []byte(`{"motion":{"speed_kmh":5}}`), false))
					if _, err := w.brokers[0].Start(w.Context(),
						&delivery.Order{Vehicle: car, Action: telematics.Lock, Actor: admin}); err != nil {
						t.Fatal(err)
					}
					w.Break(brokertest.ErrPanic, method)
					time.Sleep(time.Minute)
					w.wantCount("motorpool_panics_total", n+1)
				}
				w.answers(0, time.Second, telematics.Succeeded)
				_, err := w.send(telematics.Lock)
				w.wantCode(err, "")
			})
		})
	}
}

// What this process alone knows stays in its outbox where storing it panics.
func TestPanic_OfTheOutboxLosesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable) // nothing is published
		w.Break(errUnavailable, "Settle", "Add")
		c, err := w.send(telematics.Lock)
		if err == nil {
			t.Fatal("the command was executed")
		}
		_, err = w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandInProgress)
		w.Break(brokertest.ErrPanic, "Settle", "Add")
		time.Sleep(5 * time.Second)
		w.wantCount("motorpool_panics_total", 2)
		assert.Equal(t, w.record(c.ID).State, telematics.Expired, "the command")
		w.wantEntries(telematics.TelematicsUnavailable, telematics.CommandInProgress)
	})
}

// panickingEvents is a log whose first batch panics.
type panickingEvents struct {
	broker.Events
	panicked bool
}

func (e *panickingEvents) Publish(ctx context.Context, events []telematics.Event) ([]telematics.Event, error) {
	if !e.panicked {
		e.panicked = true
		panic("events")
	}
	return e.Events.Publish(ctx, events)
}

func TestPanic_OfTheEventPublisherIsAGap(t *testing.T) {
	inWorldOf(t, []wiring{func(_ *brokertest.Memory, c *broker.Config) { c.Events = &panickingEvents{Events: c.Events} }}, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		w.wantEvents("reset", "succeeded")
		w.wantCount("motorpool_panics_total", 1)
	})
}
