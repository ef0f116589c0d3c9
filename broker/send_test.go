package broker_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

var errUnavailable = errors.New("server is unavailable")

func TestSend_AnswerSettlesTheCommandAndWakesTheCaller(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 1500*time.Millisecond, telematics.Succeeded)
		start := time.Now()
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if took := time.Since(start); took != 1500*time.Millisecond {
			t.Errorf("the caller waited %v, want exactly 1.5 s", took)
		}
		if c.State != telematics.Succeeded || c.Attempts != 1 || c.SentAt.IsZero() || c.Latency() != 1500*time.Millisecond {
			t.Errorf("settled command %+v, want a success at the first attempt after 1.5 s", c)
		}
		p := w.mqtt.published()[0]
		if p.topic != "motorpool/v1/358240051111110/command" || p.claims.Action != telematics.Lock || p.claims.Unit != unit ||
			p.claims.Seq == 0 {
			t.Errorf("published %+v, want a signed lock on the unit's topic", p)
		}
		w.wantEntries("")
	})
}

func TestSend_RetransmitsTheSameMessageToASilentVehicleUntilTheDeadline(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		start := time.Now()
		c, err := w.send(telematics.Unlock)
		w.wantCode(err, telematics.CommandTimeout)
		if took := time.Since(start); took != telematics.DefaultBudget {
			t.Errorf("the caller waited %v, want the budget of %v", took, telematics.DefaultBudget)
		}
		if err.Outcome != telematics.MayHave || err.Command != c.ID || err.Retryable || err.RetryAfter != 10*time.Second {
			t.Errorf("error %+v, want the command, the outcome open, retry after 10 s", err)
		}
		sent := w.mqtt.published()
		if len(sent) < 3 || len(sent) > 5 {
			t.Fatalf("published %d times in 10 s, want 3 to 5", len(sent))
		}
		var last time.Duration
		for i, p := range sent[1:] {
			if !bytes.Equal(p.message, sent[0].message) {
				t.Errorf("publication %d differs from the first", i+2)
			}
			gap := p.at.Sub(sent[i].at)
			if gap < last*9/10 || gap < 1600*time.Millisecond {
				t.Errorf("publication %d came after %v, the one before after %v: want growing gaps from about 2 s", i+2, gap, last)
			}
			last = gap
		}
		if c.Attempts != len(sent) {
			t.Errorf("the command counts %d attempts, %d were published", c.Attempts, len(sent))
		}
		w.wantEntries(telematics.CommandTimeout)
	})
}

func TestSend_ReceivedAnswerDelaysRetransmission(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 100*time.Millisecond, telematics.Received)
		c, err := w.send(telematics.Unlock)
		w.wantCode(err, telematics.CommandTimeout)
		if n := len(w.mqtt.published()); n > 3 {
			t.Errorf("published %d times in 10 s after a received answer, want at most 3", n)
		}
		if c.ReceivedAt.IsZero() {
			t.Error("the command has no time of reception")
		}
	})
}

func TestSend_UnpublishedCommandExpiresAndIsNotExecuted(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable) // the connection is lost after the check for it
		time.Sleep(time.Second / 3)      // else the outbox, too, stores the outcome at the deadline
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		if c.State != telematics.Expired || err.Outcome != telematics.NotExecuted || !err.Retryable {
			t.Errorf("state %s, error %+v; want expired, not executed, retryable", c.State, err)
		}
		w.wantEntries(telematics.TelematicsUnavailable)
		w.wantEvents("accepted", "expired")
	})
}

func TestSend_PublishesNothingInTheLastHalfSecondBeforeTheExpiry(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		order := w.order(telematics.Lock)
		order.Budget = telematics.MinBudget
		for range 20 { // the expiry is rounded up to whole seconds: try several offsets
			time.Sleep(time.Second + 50*time.Millisecond)
			_, err := w.sendVia(0, order)
			w.wantCode(err, telematics.CommandTimeout)
		}
		for _, p := range w.mqtt.published() {
			if left := p.claims.Expires.Sub(p.at); left < 500*time.Millisecond {
				t.Errorf("published %v before its expiry", left)
			}
		}
	})
}

func TestSend_ContinuesAfterTheCallersContextEnds(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 4*time.Second, telematics.Succeeded)
		ctx, hangUp := context.WithCancel(w.Context())
		time.AfterFunc(time.Second, hangUp)
		r, err := w.brokers[0].Send(ctx, new(w.order(telematics.Lock)))
		if err != nil || r.Command.State != telematics.Succeeded {
			t.Errorf("state %q, error %v; want succeeded", r.Command.State, err)
		}
	})
}

func TestSend_UnitsRefusalMapsToCodeAndOutcome(t *testing.T) {
	for _, test := range []struct {
		state          telematics.State
		reason, detail string
		code           telematics.Code
		outcome        telematics.Outcome
	}{
		{telematics.Rejected, telematics.StateConflict, telematics.Moving, telematics.VehicleStateConflict, telematics.NotExecuted},
		{telematics.Rejected, telematics.Unsupported, "", telematics.CommandNotSupported, telematics.NotExecuted},
		{telematics.Rejected, telematics.BadSignature, "", telematics.CommandRejected, telematics.MayHave},
		{telematics.Rejected, telematics.WrongAudience, "", telematics.CommandRejected, telematics.MayHave},
		{telematics.Rejected, telematics.OutOfOrder, "", telematics.CommandRejected, telematics.NotExecuted},
		{telematics.Failed, "actuator", "door_rear_left", telematics.CommandFailed, telematics.HasFailed},
	} {
		t.Run(string(test.code)+" "+test.reason, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.mqtt.car = func(p publication) {
					w.answer(
						0, unit,
						telematics.Answer{
							Command: p.claims.Command, State: test.state, At: time.Now(), Reason: test.reason,
							Detail: test.detail,
						},
					)
				}
				c, err := w.send(telematics.Lock)
				w.wantCode(err, test.code)
				if err.Outcome != test.outcome || err.Reason != test.reason || err.Detail != test.detail || err.Command != c.ID {
					t.Errorf("error %+v, want outcome %q, reason %q and detail %q", err, test.outcome, test.reason, test.detail)
				}
				w.wantEntries(test.code)
			})
		})
	}
}

func TestSend_RefusedOrderIsRecorded(t *testing.T) {
	tests := []struct {
		name  string
		twin  func(*telematics.Twin)
		order func(*delivery.Order)
		code  telematics.Code
	}{
		{"unknown vehicle", nil, func(o *delivery.Order) { o.Vehicle = 7 }, telematics.VehicleNotFound},
		{"another agency's vehicle", nil, func(o *delivery.Order) { o.Actor.Agency = 2 }, telematics.VehicleNotFound},
		{"no unit", func(v *telematics.Twin) { v.Unit = "" }, nil, telematics.VehicleHasNoUnit},
		{
			"action not on record", func(v *telematics.Twin) { v.Actions = []telematics.Action{telematics.Unlock} },
			nil, telematics.CommandNotSupported,
		},
		{
			"action not declared by the unit", func(v *telematics.Twin) { v.Contact.Actions = []telematics.Action{} },
			nil, telematics.CommandNotSupported,
		},
		{"offline for an hour", func(v *telematics.Twin) {
			v.Contact = telematics.Contact{Status: telematics.Offline, LastSeen: time.Now().Add(-time.Hour), ChangedAt: time.Now()}
		}, nil, telematics.VehicleOffline},
		{"driving", func(v *telematics.Twin) {
			v.Snapshot = telematics.Snapshot{telematics.SpeedKmh: {Value: 50.0, At: time.Now()}}
		}, func(o *delivery.Order) { o.Action = telematics.DisableDriving }, telematics.VehicleStateConflict},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				twin, order := healthy(), w.order(telematics.Lock)
				if test.twin != nil {
					test.twin(&twin)
					w.Put(twin)
				}
				if test.order != nil {
					test.order(&order)
				}
				c, err := w.sendVia(0, order)
				w.wantCode(err, test.code)
				if c.ID != telematics.NoCommand || len(w.mqtt.published()) != 0 {
					t.Errorf("a refused order has command %v and %d publications, want none", c.ID, len(w.mqtt.published()))
				}
				w.wantEntries(test.code)
				line := w.Entries()[0]
				if line.Vehicle != order.Vehicle || line.Actor != order.Actor || line.RequestID != order.RequestID ||
					line.Outcome != telematics.NotExecuted {
					t.Errorf("entry %+v, want the order's vehicle, actor and request ID, not executed", line)
				}
			})
		})
	}
}

func TestSend_UnavailableServerRefusesWithoutPublishing(t *testing.T) {
	tests := map[string]func(*world){
		"MQTT broker":                         func(w *world) { w.mqtt.fail(errUnavailable, errUnavailable) },
		"Postgres, for reads":                 func(w *world) { w.Break(errUnavailable, "Twin") },
		"Postgres, for claims":                func(w *world) { w.Break(errUnavailable, "Claim") },
		"Redis":                               func(w *world) { w.Break(errUnavailable, "Register", "Lookup", "Release", "Wake") },
		"Postgres":                            func(w *world) { w.Break(errUnavailable, "Twin", "Claim", "Add", "Settle", "Updates") },
		"Redis, and Postgres for settlements": func(w *world) { w.Break(errUnavailable, "Register", "Settle", "Updates") },
	}
	for name, breakIt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				breakIt(w)
				start := time.Now()
				_, err := w.send(telematics.Lock)
				w.wantCode(err, telematics.TelematicsUnavailable)
				if err.Outcome != telematics.NotExecuted || !err.Retryable || err.RetryAfter != 5*time.Second {
					t.Errorf("error %+v, want not executed, retry after 5 s", err)
				}
				if len(w.mqtt.published()) != 0 || time.Since(start) > time.Second {
					t.Errorf("%d publications, answered after %v; want none, immediately", len(w.mqtt.published()), time.Since(start))
				}
			})
		})
	}
}
