package broker_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// lateTwins is a record of twins that takes its time for reports that are awaited.
type lateTwins struct {
	ingest.Twins
	broker.Commands
	takes time.Duration
	err   error // of reports that are awaited
}

func (x *lateTwins) Report(o delivery.Observation) func(context.Context) (delivery.Seen, error) {
	seen, err := x.Observe(context.Background(), []delivery.Observation{o})
	shared := time.After(x.takes)
	return func(ctx context.Context) (delivery.Seen, error) {
		select {
		case <-shared:
			return seen, cmp.Or(x.err, err)
		case <-ctx.Done():
			return delivery.Seen{}, ctx.Err()
		}
	}
}

// Updates finds nothing: polling for missed wake-ups must not come first.
func (x *lateTwins) Updates(context.Context, []telematics.CommandID, []telematics.CommandID) ([]telematics.Command, error) {
	return nil, nil
}

func TestAnAnswerWaitsUntilItsReportIsSeenByAll(t *testing.T) {
	for name, c := range map[string]struct {
		shared time.Duration
		err    error
		takes  time.Duration
		lost   int64 // reports
	}{
		"immediately": {},
		"in 20 ms":    {shared: 20 * time.Millisecond, takes: 20 * time.Millisecond},
		"not at all":  {shared: 20 * time.Millisecond, err: errors.New("not stored"), takes: 20 * time.Millisecond, lost: 1},
		// TestReport_IsWrittenToPostgresWhereRedisDoesNotHaveItInTime: that takes 125 ms.
		"in Postgres": {shared: 125 * time.Millisecond, takes: 125 * time.Millisecond},
		"not in time": {shared: time.Hour, takes: 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			x := &lateTwins{takes: c.shared, err: c.err}
			wire := func(_ *brokertest.Memory, c *broker.Config) {
				x.Twins, x.Commands = c.Twins, c.Commands
				c.Twins, c.Commands = x, x
			}
			inWorldOf(t, []wiring{wire}, func(w *world) {
				w.mqtt.car = func(p publication) {
					time.Sleep(time.Second)
					w.answer(0, unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now(),
						Report: &telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.IsLocked: true}}})
				}
				before := time.Now()
				_, err := w.send(telematics.Lock)
				took := time.Since(before) - time.Second
				w.wantCode(err, "")
				if took != c.takes {
					w.Errorf("it took %v beyond the vehicle's second, want %v", took, c.takes)
				}
				synctest.Wait()
				w.wantCount(`motorpool_dropped_total{kind="observation", reason="not_stored"}`, c.lost)
			})
		})
	}
}
