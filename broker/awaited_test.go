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
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// lateTwins is a store of twins that delays the result of a report that a command's answer awaits.
type lateTwins struct {
	ingest.Twins
	broker.Commands
	takes time.Duration
	err   error // returned for such reports
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

// Updates finds nothing, so that the caller is not woken by polling.
func (x *lateTwins) Updates(context.Context, []telematics.CommandID, []telematics.CommandID) ([]telematics.Command, error) {
	return nil, nil
}

func TestAnswer_WaitsUntilItsReportIsVisibleToAllInstances(t *testing.T) {
	for name, c := range map[string]struct {
		shared time.Duration
		err    error
		takes  time.Duration
		lost   int64 // reports
	}{
		"stored immediately": {},
		"stored in 20 ms":    {shared: 20 * time.Millisecond, takes: 20 * time.Millisecond},
		"not stored":         {shared: 20 * time.Millisecond, err: errors.New("not stored"), takes: 20 * time.Millisecond, lost: 1},
		// TestReport_IsWrittenToPostgresWhereRedisDoesNotHaveItInTime shows that this takes 125 ms.
		"stored in Postgres": {shared: 125 * time.Millisecond, takes: 125 * time.Millisecond},
		"not stored in time": {shared: time.Hour, takes: 250 * time.Millisecond},
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
				assert.Equal(w, took, c.takes, "the caller waited longer than the vehicle's second")
				synctest.Wait()
				w.wantCount(`motorpool_dropped_total{kind="observation", reason="not_stored"}`, c.lost)
			})
		})
	}
}
