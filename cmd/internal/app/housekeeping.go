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

// forget removes what nobody may ask for any more, again and again, until the context ends.
func forget(ctx context.Context, p *store.Postgres, log *slog.Logger) error {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = p.ForgetKeys(ctx, forgetBatch); err != nil {
				log.Warn("old idempotency keys not removed", "err", err)
			}
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = p.ForgetNotices(ctx, forgetBatch); err != nil {
				log.Warn("old notices of the payment processor not removed", "err", err)
			}
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = p.ForgetStrangers(ctx, forgetBatch); err != nil {
				log.Warn("units without a vehicle that are silent for long not removed", "err", err)
			}
		}
	}
}
