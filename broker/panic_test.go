package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
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
