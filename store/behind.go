package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

const (
	flushBatch = 512
	// recordShare and offerShare are the parts of the time that writing behind may take: one in
	// so many. Where a server is slow, or the fleet is large, more reports are joined before
	// they are written. To Redis it is more where somebody waits for it.
	recordShare = 4
	offerShare  = 2
	longestRest = 5 * time.Second // between two writings
)

// pause returns how long to rest after so much work.
func pause(worked time.Duration, share int) time.Duration {
	return min(time.Duration(share-1)*worked, longestRest)
}

// looks is how often it is looked, in the longest time between two writings, whether something still comes.
const looks = 8

// writeBehind writes to Postgres what it is owed: when nothing came for a moment, and now and then while something comes.
func (t *Twins) writeBehind(ctx context.Context, tell func([]telematics.Change)) {
	look := time.NewTicker(max(t.every/looks, time.Millisecond))
	defer look.Stop()
	written, came := time.Now(), int64(0)
	var rested time.Time // from the last batch
	for {
		share := recordShare
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.postgres.Timeout())
			defer cancel()
			t.write(last, tell, 1)
			return
		case <-look.C:
			before := came
			if came = t.came.Load(); came != before && time.Since(written) < t.every || time.Now().Before(rested) {
				continue
			}
		case <-t.lost:
			share = 1
		}
		worked := t.write(ctx, tell, share)
		written = time.Now()
		rested = written.Add(pause(worked, recordShare))
	}
}

// write writes all that is owed, batch by batch, of which each may take one part in so many of the time: what cannot wait
// has its turn between, unless what is owed is in danger. What Postgres could not take now stays owed. It returns how long the last batch took.
func (t *Twins) write(ctx context.Context, tell func([]telematics.Change), share int) (worked time.Duration) {
	defer t.toRecord.end()
	for batch := range slices.Chunk(t.toRecord.begin(), flushBatch) {
		select {
		case <-time.After(pause(worked, share)):
		case <-t.lost:
			share = 1
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // there is a last time
			t.toRecord.again(batch)
			continue
		}
		sightings := make([]sighting, len(batch))
		for i, k := range batch {
			sightings[i] = k.debt()
		}
		began := time.Now()
		if !t.keep(ctx, sightings, tell) {
			t.toRecord.again(batch)
		}
		worked = time.Since(began)
	}
	defer t.debts.end()
	for batch := range slices.Chunk(t.debts.begin(), flushBatch) {
		if !t.keep(ctx, batch, tell) {
			for _, s := range batch {
				_ = t.debts.add(s) // there was room for it
			}
		}
	}
	return worked
}

// keep reports false where Postgres could not take the sightings now.
func (t *Twins) keep(ctx context.Context, sightings []sighting, tell func([]telematics.Change)) bool {
	seen, err := t.postgres.keep(ctx, sightings)
	switch {
	case unavailable.Is(err) || errors.Is(err, context.Canceled):
		t.log.Warn("postgres is behind with the state of vehicles", "vehicles", t.toRecord.size(), "err", err)
		return false
	case err != nil:
		t.log.Error("some of the state of vehicles cannot be kept", "err", err)
	}
	if len(seen.Changes) > 0 && tell != nil {
		tell(seen.Changes)
	}
	return true
}

// offerBehind brings to Redis what it is owed. While little comes it does so at once.
func (t *Twins) offerBehind(ctx context.Context, tell func([]telematics.Change)) {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), redis.ReadTimeout)
			defer cancel()
			t.offer(last, tell)
			return
		case <-t.toRedis.sign:
		}
		t.awaitNobody() // whoever waits by now waits for what is offered now
		began := time.Now()
		if t.offer(ctx, tell) {
			t.restBeforeOffer(ctx, pause(time.Since(began), offerShare))
		} else {
			t.hurry()
			rest(ctx, unavailable.RetryAfter)
		}
	}
}

// awaitedRest is how long Redis is left alone all the same where somebody waits for it.
const awaitedRest = 5 * time.Millisecond

// restBeforeOffer waits until the time has passed, or the context ends, or somebody waits for what comes next.
func (t *Twins) restBeforeOffer(ctx context.Context, d time.Duration) {
	rest(ctx, min(d, awaitedRest))
	if d <= awaitedRest {
		return
	}
	select {
	case <-ctx.Done():
	case <-t.awaited:
	case <-time.After(d - awaitedRest):
	}
}

// awaitNobody forgets that somebody waits, before what they wait for is offered.
func (t *Twins) awaitNobody() {
	select {
	case <-t.awaited:
	default:
	}
}

// await notes that somebody waits for what was just added.
func (t *Twins) await() {
	select {
	case t.awaited <- struct{}{}:
	default:
	}
}
