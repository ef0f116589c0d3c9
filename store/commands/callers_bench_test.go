package commands

import (
	"context"
	"sync/atomic"

	"motorpool/store/groupcommit"
	"motorpool/store/pg"
)

// countBatches replaces a batcher with one that counts its batches.
func countBatches[Req, Res any](
	db *pg.DB, batcher **groupcommit.Batcher[Req, Res], run func(context.Context, []Req) ([]Res, error),
) *atomic.Int64 {
	counted := new(atomic.Int64)
	*batcher = pg.NewBatcher(db, func(ctx context.Context, reqs []Req) ([]Res, error) {
		counted.Add(1)
		return run(ctx, reqs)
	})
	return counted
}
