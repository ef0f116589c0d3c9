package app

import (
	"context"
	"log/slog"
	"time"

	"motorpool/store"
)

const (
	forgetEvery = 10 * time.Minute
	forgetBatch = 1000
)

// forget removes outdated rows, repeatedly, until the context ends.
func forget(ctx context.Context, p *store.Postgres, log *slog.Logger) error {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, old := range outdated(p) {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = old.forget(ctx, forgetBatch); err != nil {
					log.Warn("outdated rows not removed", "what", old.what, "err", err)
				}
			}
		}
	}
}

type oldRows struct {
	what   string
	forget func(ctx context.Context, limit int) (more bool, err error)
}

// outdated lists the kinds of rows that are removed after their time.
func outdated(p *store.Postgres) []oldRows {
	return []oldRows{
		{"idempotency keys", p.ForgetKeys},
		{"notices of the payment processor", p.ForgetNotices},
		{"used signatures", p.ForgetSignatures},
		{"bookings that were never started", p.FreeVehicles},
		{"units without a vehicle that are silent for long", p.ForgetUnknownUnits},
	}
}
