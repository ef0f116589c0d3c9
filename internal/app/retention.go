package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/guard"
	"motorpool/store/commands"
)

// The pauses between two batches of settled commands: while more are due, and otherwise.
const (
	moveAgain = time.Second
	moveEvery = 10 * time.Second
)

// newMovedGauge registers a gauge of the time at which this instance last moved settled commands.
func newMovedGauge(registry *prometheus.Registry) prometheus.Gauge {
	return promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "motorpool_settled_commands_moved_timestamp_seconds",
		Help: "Time at which this instance last looked for old settled commands, and moved them if there were any; 0: not yet.",
	})
}

// moveSettled moves commands that were settled long ago to the partitions of their months, until
// the context ends.
func moveSettled(ctx context.Context, record *commands.Store, moved prometheus.Gauge, log *slog.Logger) error {
	var outage guard.Outage
	for {
		more, err := record.MoveSettled(ctx)
		if outage.Note(ctx, log, "settled commands not moved", err); err == nil {
			moved.SetToCurrentTime()
		}
		wait := moveEvery
		if more {
			wait = moveAgain
		}
		if !guard.Pause(ctx, wait) {
			return nil
		}
	}
}
