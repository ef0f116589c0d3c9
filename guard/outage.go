package guard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Outage logs that a loop which retries by itself fails: one line when that begins, and one when an
// attempt succeeds again. The failures between them are logged for debugging only. The zero value
// is ready for use. It is safe for concurrent use.
type Outage struct {
	mu    sync.Mutex
	since time.Time // zero: the latest attempt has succeeded
}

// Note notes the result of an attempt; nil: it has succeeded. Both lines say what fails. It does
// nothing once the context is cancelled, which fails attempts, too.
func (o *Outage) Note(ctx context.Context, log *slog.Logger, what string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
	case err != nil && o.since.IsZero():
		o.since = time.Now()
		log.Warn("outage began, retrying", "what", what, "err", err)
	case err != nil:
		log.Debug("outage goes on, retrying", "what", what, "err", err)
	case !o.since.IsZero():
		log.Info("outage ended", "what", what, "took", time.Since(o.since))
		o.since = time.Time{}
	}
}
