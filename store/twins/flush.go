package twins

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/guard"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// Run flushes merged observations to Redis and to Postgres. It blocks until the context ends, and
// then flushes the rest: to Redis for redis.ReadTimeout at most, and then to Postgres for no
// longer than one statement may take. It returns nil. Changes of states are passed to publish:
// each once, by the instance that writes it to Redis.
func (t *Twins) Run(ctx context.Context, publish func([]telematics.Change)) error {
	var loops sync.WaitGroup
	for doing, run := range map[string]func(context.Context) error{
		"flush to postgres": func(ctx context.Context) error { return t.runPostgres(ctx, publish) },
		"flush to redis":    func(ctx context.Context) error { return t.runRedis(ctx, publish) },
		"write due states":  t.runDue,
		"watch moves":       t.owners.watchMoves,
	} {
		loops.Go(func() { _ = t.guard.Keep(ctx, doing, run) })
	}
	loops.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.stored.Timeout())
	defer cancel()
	t.flushPostgres(last, 1, publish) // what Redis has not taken in its last flush
	if left := len(t.queue.owed()) + t.unresolved.size(); left > 0 {
		t.log.Warn("reported state lost at shutdown, postgres write failed; the next reports replace it", "vehicles", left)
	}
	return nil
}

// pause returns how long to pause after work that may take 1/share of the time.
func pause(worked time.Duration, share int) time.Duration {
	return min(time.Duration(share-1)*worked, longestPause)
}

// isolate flushes a batch, and after a panic each state alone, so that one that cannot be flushed
// is dropped and not the others. It returns those that are dropped: a state comes again with the
// next report of its vehicle.
func isolate[T any](t *Twins, doing string, batch []T, flush func([]T)) (dropped []T) {
	switch {
	case t.guard.Do(doing, func() { flush(batch) }) == nil:
		return nil
	case len(batch) == 1:
		return batch
	}
	for i := range batch {
		dropped = append(dropped, isolate(t, doing, batch[i:i+1], flush)...)
	}
	return dropped
}

// runPostgres flushes what Redis does not take: every FlushEvery, and immediately where that is
// new.
func (t *Twins) runPostgres(ctx context.Context, publish func([]telematics.Change)) error {
	next := time.NewTimer(t.flushEvery)
	defer next.Stop()
	for {
		share := postgresShare
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		case <-t.redisFailed:
			share = 1
		}
		worked := t.flushPostgres(ctx, share, publish)
		next.Reset(max(t.flushEvery, pause(worked, postgresShare)))
	}
}

// flushPostgres writes what Redis does not take, in batches that take at most 1/share of the time,
// so that other statements run between them. There is no pause once Redis fails. What could not be
// written stays queued. It publishes the alarms of units that were not looked up before. It returns
// how long the last batch took.
func (t *Twins) flushPostgres(ctx context.Context, share int, publish func([]telematics.Change)) (worked time.Duration) {
	var failed error
	for batch := range slices.Chunk(t.queue.owed(), postgresBatch) {
		select {
		case <-time.After(pause(worked, share)):
		case <-t.redisFailed:
			share = 1
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return worked // the last flush is yet to come
		}
		began := time.Now()
		for _, p := range isolate(t, "flush reported state to postgres", batch, func(part []*pending) {
			failed = cmp.Or(t.flushOwed(ctx, part), failed)
		}) {
			_, observed := t.queue.observation(p)
			t.queue.setStored(p, observed, began)
		}
		worked = time.Since(began)
	}
	for batch := range slices.Chunk(t.unresolved.drain(), postgresBatch) {
		_ = t.guard.Do("flush reported state of units that were not looked up", func() {
			alarms, left, err := t.store(ctx, batch)
			if len(alarms) > 0 && publish != nil {
				publish(alarms)
			}
			for _, o := range left {
				_ = t.unresolved.add(o) // the next report replaces one that has no room any more
			}
			failed = cmp.Or(err, failed)
		})
	}
	t.unstored.Note(ctx, t.log, "reported state not written to postgres", failed)
	return worked
}

func (t *Twins) flushOwed(ctx context.Context, batch []*pending) error {
	began := time.Now()
	observations, counts := make([]observation, len(batch)), make([]int, len(batch))
	for i, p := range batch {
		observations[i], counts[i] = t.queue.observation(p)
	}
	_, left, err := t.store(ctx, observations)
	for i, p := range batch {
		if !slices.ContainsFunc(left, func(o observation) bool { return o.vehicle == p.vehicle }) {
			t.queue.setStored(p, counts[i], began)
		}
	}
	return err
}

// store returns the alarms of the observations that it has written, those that were not written and
// must be retried, and why.
func (t *Twins) store(ctx context.Context, observations []observation) (alarms []telematics.Change, left []observation, err error) {
	seen, left, err := t.stored.observe(ctx, observations) // reports change no presence
	err = cmp.Or(err, t.stored.lockedError(ctx, seen))
	if err != nil && len(left) == 0 {
		t.log.Error("reported state refused by postgres", "err", err)
		err = nil
	}
	return seen.Changes, left, err
}

// runRedis flushes immediately while few reports come.
func (t *Twins) runRedis(ctx context.Context, publish func([]telematics.Change)) error {
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), redis.ReadTimeout)
			defer cancel()
			t.flushRedis(last, publish)
			return nil
		case <-t.queue.added:
		}
		t.awaited.clear() // the reports awaited so far are in this flush
		began := time.Now()
		if t.flushRedis(ctx, publish) {
			t.pauseRedis(ctx, pause(time.Since(began), redisShare), began)
		} else {
			t.redisFailed.set()
			guard.Pause(ctx, unavailable.RetryAfter)
		}
	}
}

// pauseRedis waits until the time has passed, and redisEvery since the flush began, or until the
// context ends, or a caller awaits a report.
func (t *Twins) pauseRedis(ctx context.Context, d time.Duration, began time.Time) {
	guard.Pause(ctx, min(d, awaitedPause))
	more := max(d-awaitedPause, redisEvery-time.Since(began))
	if more <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-t.awaited:
	case <-time.After(more):
	}
}

// flushRedis writes all that is queued, and publishes the changes. Merging is done here; Redis only
// compares and swaps: a state that another instance has replaced meanwhile is read, merged and
// written again. It reports false where Redis could not be reached; then everything stays queued.
func (t *Twins) flushRedis(ctx context.Context, publish func([]telematics.Change)) bool {
	reached := true
	for batch := range slices.Chunk(t.queue.take(), redisBatch) {
		left := batch
		if reached {
			left = nil
			for _, p := range isolate(t, "flush reported state to redis", batch, func(part []*pending) {
				more, ok := t.flushBatch(ctx, part, publish)
				left, reached = append(left, more...), reached && ok
			}) {
				p.answer(false)
				t.queue.done(p)
			}
		}
		for _, p := range left {
			p.answer(false)
			t.queue.putBack(p)
		}
	}
	return reached
}

// flushBatch writes a batch to Redis. It returns what is not written.
func (t *Twins) flushBatch(
	ctx context.Context, batch []*pending, publish func([]telematics.Change),
) (left []*pending, reached bool) {
	left = batch
	var written, some []update
	var err error
	for round := 0; len(left) > 0 && round < redisRounds && err == nil; round++ {
		some, left, err = t.updateRedis(ctx, left, round > 0)
		written = append(written, some...)
	}
	var dueNow []telematics.VehicleID
	for _, u := range written {
		if u.dueNow {
			dueNow = append(dueNow, u.vehicle)
		}
	}
	failed := t.dues.makeDue(ctx, dueNow)
	for _, u := range written { // before publishing, which may take long
		u.answer(true)
	}
	if changes := t.changes(ctx, written); len(changes) > 0 && publish != nil {
		publish(changes)
	}
	for _, u := range written {
		if u.dueNow && failed != nil {
			left = append(left, u.pending)
		} else {
			t.queue.done(u.pending)
		}
	}
	return left, err == nil && failed == nil
}

// updateRedis makes one attempt, with states that this instance has kept, or all read anew. It
// returns what it has written, and what is left because another instance was faster.
func (t *Twins) updateRedis(ctx context.Context, batch []*pending, reread bool) (written []update, left []*pending, err error) {
	defer tracing.Step(ctx, delivery.StepMerge).End()
	updates, err := t.newUpdates(ctx, batch, reread)
	if err != nil {
		t.recordWrite(ctx, err)
		return nil, batch, err
	}
	var marks []*goredis.IntCmd
	outcomes, err := t.redis.update(ctx, updates, func(pipe goredis.Pipeliner) {
		marks = t.dues.mark(ctx, pipe, t.dues.dueTimes(updates))
	})
	for _, mark := range marks {
		err = cmp.Or(err, unavailable.Wrap("note what is to be stored", mark.Err()))
	}
	t.recordWrite(ctx, err)
	if err != nil {
		for _, u := range updates {
			u.attempt = attempt{u.token, u.changed}
		}
		return nil, batch, err
	}
	for i, u := range updates {
		switch result := outcomes[i]; {
		case result.conflict:
			left = append(left, u.pending)
		case result.err != nil:
			t.log.Warn("reported state refused by redis", "vehicle", u.vehicle, "err", result.err)
			u.answer(false)
			t.queue.refuse(u.pending)
			t.redisFailed.set()
		default:
			u.dueNow = u.dueNow || t.changesConnectivity(u, result)
			t.keepHot(u, result)
			written = append(written, u)
		}
	}
	return written, left, nil
}

// keepHot keeps the state of a vehicle that reports often.
func (t *Twins) keepHot(u update, result outcome) {
	if s := u.written(); result.complete && s.base != "" && u.At.Sub(result.before) < hotWithin {
		t.hot.Add(u.vehicle, s)
	} else {
		t.hot.Remove(u.vehicle)
	}
}

func (t *Twins) recordWrite(ctx context.Context, err error) {
	if ctx.Err() == nil {
		t.writing.Record(err)
	}
}

// newUpdates merges what is pending with the states in Redis, and in Postgres where Redis does not
// include these.
func (t *Twins) newUpdates(ctx context.Context, batch []*pending, reread bool) ([]update, error) {
	held := make([]redisState, len(batch))
	var ids, incomplete []telematics.VehicleID
	for i, p := range batch {
		if s, ok := t.hot.Get(p.vehicle); ok && s.unit == p.Unit && !s.lost && !reread {
			held[i] = s.redisState
			held[i].snapshot = s.snapshot.Clone()
		} else {
			ids = append(ids, p.vehicle)
		}
	}
	found, err := t.redis.read(ctx, ids)
	if err != nil {
		return nil, err
	}
	kept := map[telematics.VehicleID]*hotState{}
	for i, p := range batch {
		if held[i].unit != "" {
			continue
		}
		if s := found[p.vehicle]; s.unit == p.Unit {
			held[i] = s
		}
		if s, ok := t.hot.Peek(p.vehicle); ok && s.unit == p.Unit {
			kept[p.vehicle] = s
		}
		if held[i].base == "" {
			incomplete = append(incomplete, p.vehicle)
		}
	}
	inPostgres := t.loadStored(ctx, incomplete)
	updates := make([]update, len(batch))
	for i, p := range batch {
		updates[i], err = newUpdate(p, held[i], kept[p.vehicle], inPostgres[p.vehicle], t.redis.newToken())
		if err != nil { // never for the types of ParseValue
			t.log.Error("section not encoded", "vehicle", p.vehicle, "err", err)
		}
	}
	return updates, nil
}

// storedTwin is the part of a vehicle in Postgres from which its state is loaded.
type storedTwin struct {
	snapshot telematics.Snapshot
	base     base
	seen     time.Time
	offline  bool
}

// loadStored reads vehicles from Postgres; none where that fails.
func (t *Twins) loadStored(ctx context.Context, ids []telematics.VehicleID) map[telematics.VehicleID]*storedTwin {
	if len(ids) == 0 {
		return nil
	}
	found, err := t.stored.load(ctx, ids, t.redis.newBase)
	if err != nil {
		t.log.Debug("reported state not compared with postgres", "vehicles", len(ids), "err", err)
	}
	return found
}

// changes returns the changes to publish, with the present owners: where Redis was unavailable
// for a while, the vehicle may belong to another agency by now.
func (t *Twins) changes(ctx context.Context, written []update) []telematics.Change {
	written = slices.DeleteFunc(slices.Clone(written), func(u update) bool { return u.changed.Empty() })
	owners := t.owners.resolve(ctx, pg.Map(written, func(u update) telematics.Unit { return u.Unit }))
	list := make([]telematics.Change, 0, len(written))
	for _, u := range written {
		change := u.change()
		if o, ok := owners[u.Unit]; ok {
			if o.vehicle != u.vehicle { // the unit was built into another one since
				continue
			}
			change.Agency, change.Powertrain = o.agency, o.powertrain
		}
		list = append(list, change)
	}
	return list
}
