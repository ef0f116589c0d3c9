package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

const flooding = telematics.Unit("flooding")

// unknownAnswer is an answer to a command that does not exist.
func unknownAnswer() []byte {
	return v1.EncodeAnswer(telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
}

// lookups records the units whose answers are handled, in their order.
type lookups struct {
	broker.PendingTable
	mu    sync.Mutex
	units []telematics.Unit
}

func (l *lookups) Lookup(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (delivery.Pending, bool, error) {
	l.mu.Lock()
	l.units = append(l.units, unit)
	l.mu.Unlock()
	return l.PendingTable.Lookup(ctx, unit, id)
}

// However many messages of one unit are queued, another unit's answer waits for a bounded number of
// them.
func TestFlood_DelaysAnotherUnitsAnswerByABoundedNumberOfMessages(t *testing.T) {
	const flood, bound = 5000, 128
	inWorld(t, 0, func(w *world) {
		c := w.Config()
		table := &lookups{PendingTable: c.Pending}
		c.Pending, c.Publisher, c.Workers, c.Logger = table, w.mqtt, 1, slog.New(slog.DiscardHandler)
		b := broker.New(c)
		for range flood {
			b.Answer(brokertest.Said(flooding, unknownAnswer(), false))
		}
		b.Answer(brokertest.Said(unit, unknownAnswer(), false))
		ctx, stop := context.WithCancel(w.Context())
		var running sync.WaitGroup
		running.Go(func() {
			assert.NoError(t, b.Run(ctx), "Run")
		})
		synctest.Wait()
		stop()
		running.Wait()
		before := 0
		for before < len(table.units) && table.units[before] != unit {
			before++
		}
		if before > bound || before == len(table.units) {
			t.Errorf("%d answers of the flooding unit were handled before that of another unit, want at most %d", before, bound)
		}
		if limited, dropped := metric(t, b, `motorpool_dropped_total{kind="answer", reason="over_allowance"}`),
			metric(t, b, `motorpool_dropped_total{kind="answer", reason="queue_full"}`); limited+dropped < flood-bound-1 || limited == 0 {
			t.Errorf("%d over the allowance and %d dropped, want some of the former, and in sum the rest of %d", limited, dropped, flood)
		}
	})
}

// The flood may come from the login of a vehicle in use, whose commands must still work.
func TestFlood_FirstAnswerOfTheFloodingUnitIsHandled(t *testing.T) {
	for name, heardBy := range map[string]int{"at the instance where the caller waits": 0, "at another instance": 1} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				flood := func(n int) {
					for range n {
						w.brokers[heardBy].Answer(brokertest.Said(unit, unknownAnswer(), false))
					}
				}
				w.mqtt.car = func(p publication) {
					for range 10 { // for a second
						flood(300)
						time.Sleep(100 * time.Millisecond)
					}
					w.answer(heardBy, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Received, At: time.Now()})
					flood(300)
					w.answer(heardBy, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
					flood(300)
				}
				start := time.Now()
				_, err := w.send(telematics.Lock)
				w.wantCode(err, "")
				if took := time.Since(start); took != time.Second {
					t.Errorf("the caller waited %v, want 1 s: the first answer is not limited", took)
				}
				if metric(t, w.brokers[heardBy], `motorpool_dropped_total{kind="answer", reason="over_allowance"}`) == 0 {
					t.Error("no message was over the allowance: the flood was too small for this test")
				}
			})
		})
	}
}

func TestFlood_OfAnswersToAnOpenCommandDoesNotKeepItFromBeingSettled(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.car = func(p publication) {
			for range 5000 {
				w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Received, At: time.Now()})
			}
			w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
		}
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if n := metric(t, w.brokers[0], `motorpool_dropped_total{kind="answer", reason="over_allowance"}`); n < 4000 {
			t.Errorf("%d of 5000 answers were over the allowance, want at least 4000", n)
		}
	})
}

// [CMD-5] [TEL-3] When a unit reconnects, it sends everything that it stored while it was offline.
func TestFlood_MessagesStoredWhileAUnitWasOfflineAreNotLimited(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		var late []telematics.CommandID
		for range 64 {
			c, err := w.send(telematics.Lock)
			w.wantCode(err, telematics.CommandTimeout)
			late = append(late, c.ID)
		}
		time.Sleep(time.Minute)
		done := func(id telematics.CommandID) telematics.Answer {
			return telematics.Answer{Command: id, State: telematics.Succeeded, At: time.Now()}
		}
		var last []telematics.Answer
		for _, id := range late {
			w.answer(0, unit, telematics.Answer{Command: id, State: telematics.Received, At: time.Now()})
			w.answer(0, unit, done(id))
			last = append(last, done(id))
		}
		for range 20 { // stored reports, each with results
			w.brokers[0].Report(brokertest.Said(unit, reportWith(last[len(last)-8:]...), false))
		}
		synctest.Wait()
		for _, id := range late {
			if c := w.record(id); c.State != telematics.Succeeded {
				t.Errorf("the record says %s, want succeeded", c.State)
			}
		}
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="over_allowance"}`, 0)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="over_allowance"}`, 0)
	})
}

func TestFlood_OfReportsAndPresenceIsLimitedToTheAllowance(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		const flood = 10_000
		for i := range flood {
			w.brokers[0].Report(brokertest.Said(flooding, []byte(`{}`), false))
			w.brokers[0].Presence(brokertest.Said(flooding, fmt.Appendf(nil, `{"status":"online","session":"%d"}`, i), false))
		}
		w.brokers[0].Report(brokertest.Said(unit, []byte(`{}`), false))
		w.brokers[0].Presence(brokertest.Said(unit, []byte(`{"status":"standby","session":"a"}`), false))
		time.Sleep(100 * time.Millisecond)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="over_allowance"}`, flood-512)
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="over_allowance"}`, flood-64)
		w.wantCount(`motorpool_dropped_total{kind="report", reason="queue_full"}`, 0)
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="queue_full"}`, 0)
		w.wantCount("motorpool_reports_merged_total", 1)
		time.Sleep(900 * time.Millisecond) // the allowance grows again
		for range 1000 {
			w.brokers[0].Report(brokertest.Said(flooding, []byte(`{}`), false))
		}
		w.wantCount(`motorpool_dropped_total{kind="report", reason="over_allowance"}`, flood-512+900)
	})
}

// The MQTT broker delivers retained presence once for each subscription.
func TestFlood_RetainedPresenceIsNotLimited(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for range 500 {
			w.brokers[0].Presence(brokertest.Said(unit, []byte(`{"status":"online","session":"a"}`), true))
		}
		w.wantCount(`motorpool_dropped_total{kind="presence", reason="over_allowance"}`, 0)
	})
}

func TestFlood_IsLoggedOncePerInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log brokertest.Log
		c := brokertest.NewMemory().Config()
		c.Publisher = &publisher{}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		b := broker.New(c)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = b.Run(ctx) })
		defer running.Wait()
		defer stop()
		for range 40 { // 20 s
			for range 200 {
				b.Answer(brokertest.Said(flooding, unknownAnswer(), false))
			}
			time.Sleep(500 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := strings.Count(log.String(), `msg="unit over its allowance, messages dropped" unit=flooding answers=`); n != 2 {
			t.Errorf("%d warnings in 21 s, want 2:\n%s", n, log.String())
		}
	})
}
