package twins

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/internal/metricstest"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// poison is a value that cannot be written.
type poison struct{}

func (poison) MarshalJSON() ([]byte, error) { panic("poison") }

// A vehicle whose state cannot be written holds up no other vehicle, whose states are in Redis and
// in Postgres; its next report replaces what was dropped.
func TestFlush_PanicDropsTheStateOfOneVehicle(t *testing.T) {
	p, registry := open(t, storetest.NewDatabase(t)), prometheus.NewRegistry()
	twins := New(Config{
		DB: p.DB, Vehicles: p.Fleet, Redis: openRedis(t, storetest.StartMiniredis(t).URL()), FlushEvery: 50 * time.Millisecond,
		Guard: guard.New(slog.New(slog.DiscardHandler), registry),
	})
	add := storetest.Vehicles(t, p.DB)
	bad, badUnit := add()
	var good []telematics.VehicleID
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	report := statusAt(start, 1)
	report.Values[telematics.OEMData] = map[string]any{"n": poison{}}
	observed(t, twins, badUnit, report)
	for range 3 {
		id, unit := add()
		observed(t, twins, unit, statusAt(start, 7))
		good = append(good, id)
	}
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	written := func(id telematics.VehicleID, km float64) {
		t.Helper()
		storetest.Eventually(t, "redis and postgres have the state", func() bool {
			read, err := twins.Twin(t.Context(), id)
			stored, failed := p.Twin(t.Context(), id)
			return mileage(t, read, err) == km && mileage(t, stored, failed) == km
		})
	}
	for _, id := range good {
		written(id, 7)
	}
	if n := metricstest.Sum(t, registry, "motorpool_panics_total"); n == 0 {
		t.Error("no panic was counted")
	}
	observed(t, twins, badUnit, statusAt(start, 9))
	written(bad, 9)
}
