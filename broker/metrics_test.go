package broker_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/internal/assert"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestMetrics_OfACommand(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 1200*time.Millisecond, telematics.Succeeded)
		go func() {
			time.Sleep(600 * time.Millisecond)
			assert.Equal(t, metric(t, w.brokers[0], "motorpool_commands_in_flight"), 1, "in flight")
			_, err := w.send(telematics.Unlock)
			w.wantCode(err, telematics.CommandInProgress)
		}()
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		values, gatherErr := metricstest.Gather(w.brokers[0].Metrics().(prometheus.Gatherer))
		require.NoError(t, gatherErr)
		for sample, want := range map[string]float64{
			`motorpool_commands_total{action="lock", outcome="executed", protocol="v1"}`:       1,
			`motorpool_commands_total{action="lock", outcome="unknown", protocol="v1"}`:        0,
			`motorpool_commands_total{action="unlock", outcome="not_executed", protocol="v1"}`: 0,
			`motorpool_commands_refused_total{code="command_in_progress"}`:                     1,
			`motorpool_command_duration_seconds_bucket{le="1"}`:                                0,
			`motorpool_command_duration_seconds_bucket{le="1.5"}`:                              1,
			"motorpool_command_duration_seconds_count":                                         1,
			"motorpool_commands_published_total":                                               1,
			"motorpool_commands_in_flight":                                                     0,
		} {
			if got, ok := values[sample]; !ok || got != want {
				t.Errorf("%s is %v, %t; want %v", sample, got, ok, want)
			}
		}
	})
}

func TestMetrics_OfTheOutboxAndTheClock(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.SetClock(-900 * time.Millisecond)
		w.Break(errUnavailable, "Settle")
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		assert.Equal(t, metric(t, w.brokers[0], `motorpool_outbox_items{kind="settlement"}`), 1, "settlements in the outbox")
		w.Break(nil, "Settle")
		time.Sleep(2 * time.Second)
		assert.Equal(t, metric(t, w.brokers[0], `motorpool_outbox_items{kind="settlement"}`), 0, "settlements in the outbox")
		values, gatherErr := metricstest.Gather(w.brokers[0].Metrics().(prometheus.Gatherer))
		if offset := values["motorpool_clock_offset_seconds"]; gatherErr != nil || offset < 0.89 || offset > 0.91 {
			t.Errorf("the clock offset is %v s, error %v; want 0.9 s", offset, gatherErr)
		}
	})
}
