package places

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
)

// FinderConfig assembles a finder. All but Metrics is required.
type FinderConfig struct {
	Geocoder Geocoder
	Fleet    Fleet
	Leases   Leases
	Book     *Book
	Log      *slog.Logger
	Metrics  prometheus.Registerer // Defaults to none: the counters are not exported.
}

// Finder requests the addresses that the book lacks from the geocoder.
type Finder struct {
	FinderConfig
	metrics *metrics

	record, geocoder condition // owned by Run's goroutine
	forget           time.Time // when next
}

// NewFinder returns a finder that sends no request before Run.
func NewFinder(config FinderConfig) *Finder {
	return &Finder{
		FinderConfig: config,
		metrics:      newMetrics(config.Metrics),
		record:       condition{log: config.Log, source: "lease"},
		geocoder:     condition{log: config.Log, source: "geocoder"},
	}
}

// Run requests missing addresses. It blocks until the context ends, then returns nil; failures are
// logged and retried.
func (f *Finder) Run(ctx context.Context) error {
	for {
		err := f.work(ctx)
		if ctx.Err() != nil {
			return nil
		}
		f.record.is(err)
		if !sleep(ctx, takeEvery) {
			return nil
		}
	}
}

// lease is the right to send requests to the geocoder.
type lease struct {
	holder    uuid.UUID
	confirmed time.Time // before the statement that acquired or extended it
	failures  int
}

// isValid reports whether the lease still lasts for a whole request. A process that was
// suspended may have lost it unnoticed.
func (t *lease) isValid() bool { return time.Since(t.confirmed) < hold-askFor }

// work acquires the lease, if it is free, requests some addresses, and releases it. Its
// error is that of Postgres.
func (f *Finder) work(ctx context.Context) error {
	t := lease{holder: uuid.New(), confirmed: time.Now()}
	failures, taken, err := f.Leases.AcquireLease(ctx, t.holder, hold)
	if err != nil || !taken {
		return err
	}
	t.failures = failures
	next, err := f.ask(ctx, &t)
	// At a shutdown too: else the other instances wait until the lease expires.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	if endErr := f.Leases.ReleaseLease(ending, t.holder, t.failures, next); err == nil {
		err = endErr
	}
	return err
}

// ask requests missing addresses, at most shift of them, and returns how long no instance may
// send the next request.
func (f *Finder) ask(ctx context.Context, t *lease) (next time.Duration, err error) {
	missing, err := f.missing(ctx)
	if err != nil || len(missing) == 0 {
		return idle, err
	}
	asked := 0
	for _, place := range missing {
		if asked == shift {
			break
		}
		if f.Book.Knows(place.Agency, place.Position) { // found by an earlier request of this loop
			continue
		}
		if asked > 0 && !sleep(ctx, pace) || !t.isValid() {
			break
		}
		asked++
		at := rounded(place.Position)
		text, err := f.say(ctx, at)
		if ctx.Err() != nil {
			break
		}
		f.geocoder.is(err)
		if err != nil {
			t.failures++
			return putOff(t.failures, err), nil
		}
		t.confirmed, t.failures = time.Now(), 0
		kept, err := f.Leases.KeepAddress(ctx, t.holder, telematics.Address{Position: at, Text: text}, hold)
		if err != nil || !kept {
			return pace, err
		}
		if err := f.Book.Learn(ctx); err != nil {
			return pace, err
		}
	}
	return pace, nil
}

// missing returns the positions without a cached address: first those of vehicles whose ignition
// is off. Each group is shuffled, so that a position whose request fails is not always the first.
func (f *Finder) missing(ctx context.Context) ([]telematics.Parked, error) {
	if now := time.Now(); !now.Before(f.forget) {
		if err := f.Leases.ForgetAddresses(ctx, keepFor, keepAtMost); err != nil {
			return nil, err
		}
		f.forget = now.Add(forgetEvery)
	}
	if !f.Book.ready() {
		return nil, nil
	}
	if err := f.Book.Learn(ctx); err != nil {
		return nil, err
	}
	parked, err := f.Fleet.Parked(ctx)
	if err != nil {
		return nil, err
	}
	var off, on []telematics.Parked
	for _, p := range parked {
		switch {
		case f.Book.Knows(p.Agency, p.Position):
		case p.Off:
			off = append(off, p)
		default:
			on = append(on, p)
		}
	}
	rand.Shuffle(len(off), func(i, j int) { off[i], off[j] = off[j], off[i] })
	rand.Shuffle(len(on), func(i, j int) { on[i], on[j] = on[j], on[i] })
	return append(off, on...), nil
}

func (f *Finder) say(ctx context.Context, p telematics.Position) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	text, err := f.Geocoder.Address(ctx, p)
	switch {
	case err != nil:
		f.metrics.failed.Inc()
		return "", fmt.Errorf("ask for an address: %w", err)
	case text == "":
		f.metrics.none.Inc()
	default:
		f.metrics.found.Inc()
	}
	return text, nil
}

// rounded rounds to about a metre: a geocoder needs no more.
func rounded(p telematics.Position) telematics.Position {
	const perDegree = 1e5
	return telematics.Position{
		Latitude:  math.Round(p.Latitude*perDegree) / perDegree,
		Longitude: math.Round(p.Longitude*perDegree) / perDegree,
	}
}

// condition is whether a source of addresses works. It is logged only when it changes. One
// goroutine owns it.
type condition struct {
	log    *slog.Logger
	source string
	bad    bool
}

func (c *condition) is(err error) {
	switch {
	case err != nil && !c.bad:
		c.log.Warn("addresses not refreshed, retrying", "source", c.source, "err", err)
	case err == nil && c.bad:
		c.log.Info("addresses refreshed again", "source", c.source)
	}
	c.bad = err != nil
}
