package broker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// bringing is a record of twins that brings reports to where all see them, or does not.
type bringing struct {
	*brokertest.Memory
	bring    func() <-chan bool
	observed atomic.Int32
}

func (x *bringing) ObserveAndFlush(delivery.Observation) <-chan bool { return x.bring() }

// Updates finds nothing: the look after missed wake-ups must not come between.
func (x *bringing) Updates(context.Context, []telematics.CommandID, []telematics.CommandID) ([]telematics.Command, error) {
	return nil, nil
}

func (x *bringing) Observe(ctx context.Context, seen []delivery.Observation) (delivery.Seen, error) {
	for _, o := range seen {
		if o.Awaited {
			x.observed.Add(1)
		}
	}
	return x.Memory.Observe(ctx, seen)
}

func TestAnAnswerWaitsUntilItsReportIsSeenByAll(t *testing.T) {
	after := func(d time.Duration, there bool) func() <-chan bool {
		return func() <-chan bool {
			shared := make(chan bool, 1)
			time.AfterFunc(d, func() { shared <- there })
			return shared
		}
	}
	for name, c := range map[string]struct {
		bring    func() <-chan bool
		takes    time.Duration
		observed int32
	}{
		"in 20 ms":        {after(20*time.Millisecond, true), 20 * time.Millisecond, 0},
		"not at all":      {after(20*time.Millisecond, false), 20 * time.Millisecond, 1},
		"not in time":     {after(time.Hour, true), 125 * time.Millisecond, 1},
		"it is not known": {func() <-chan bool { return nil }, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			x := &bringing{bring: c.bring}
			inWorldOf(t, []func(*brokertest.Memory) stores{func(m *brokertest.Memory) stores { x.Memory = m; return x }}, func(w *world) {
				w.mqtt.car = func(p publication) {
					time.Sleep(time.Second)
					w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now(),
						Report: &telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.IsLocked: true}}})
				}
				before := time.Now()
				_, err := w.send(telematics.Lock)
				took := time.Since(before) - time.Second
				w.wantCode(err, "")
				if took != c.takes || x.observed.Load() != c.observed {
					w.Errorf("it took %v beyond the vehicle's second, and was observed %d times; want %v, %d", took, x.observed.Load(), c.takes, c.observed)
				}
				synctest.Wait()
			})
		})
	}
}
