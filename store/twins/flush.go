package twins

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

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
		"flush to postgres": t.runPostgres, "flush to redis": func(ctx context.Context) error { return t.runRedis(ctx, publish) },
		"write due states": t.runDue, "watch moves": t.owners.watchMoves,
	} {
		loops.Go(func() { _ = t.guard.Keep(ctx, doing, run) })
	}
	loops.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.stored.Timeout())
	defer cancel()
	t.flushPostgres(last, 1) // states that Redis did not accept are in this outbox, too
	if left := t.toPostgres.size() + t.unresolved.size(); left > 0 {
		t.log.Warn("reported state lost at shutdown, postgres write failed; the next reports replace it", "vehicles", left)
	}
	return nil
}

// pause returns how long to pause after work that may take 1/share of the time.
func pause(worked time.Duration, share int) time.Duration {
	return min(time.Duration(share-1)*worked, longestPause)
}

// sleep waits until the time has passed or the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// isolate flushes a batch, and after a panic each state alone, so that one that cannot be flushed
// is dropped and not the others. It returns those that are dropped: a state comes again with the
// next report of its vehicle.
func (t *Twins) isolate(doing string, batch []*state, flush func([]*state)) (dropped []*state) {
	switch {
	case t.guard.Do(doing, func() { flush(batch) }) == nil:
		return nil
	case len(batch) == 1:
		return batch
	}
	for i := range batch {
		dropped = append(dropped, t.isolate(doing, batch[i:i+1], flush)...)
	}
	return dropped
}

// runPostgres flushes what Redis does not take or has lost: every FlushEvery, and immediately where
// it has lost states.
func (t *Twins) runPostgres(ctx context.Context) error {
	next := time.NewTimer(t.flushEvery)
	defer next.Stop()
	for {
		share := postgresShare
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		case <-t.redisLost:
			share = 1
		}
		worked := t.flushPostgres(ctx, share)
		next.Reset(max(t.flushEvery, pause(worked, postgresShare)))
	}
}

// flushPostgres writes all queued states, in batches that take at most 1/share of the time, so
// that other statements run between them. There is no pause once Redis has lost states. States
// that could not be written stay queued. It returns how long the last batch took.
func (t *Twins) flushPostgres(ctx context.Context, share int) (worked time.Duration) {
	defer t.toPostgres.end()
	for batch := range slices.Chunk(t.toPostgres.begin(), postgresBatch) {
		select {
		case <-time.After(pause(worked, share)):
		case <-t.redisLost:
			share = 1
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // the last flush is yet to come
			t.toPostgres.putBack(batch...)
			continue
		}
		states := make(map[telematics.VehicleID]*state, len(batch))
		for _, s := range batch {
			states[s.vehicle] = s
		}
		began := time.Now()
		t.isolate("flush reported state to postgres", batch, func(part []*state) {
			observations := make([]observation, len(part))
			for i, s := range part {
				observations[i] = s.observation()
			}
			for _, o := range t.store(ctx, observations) {
				t.toPostgres.putBack(states[o.vehicle])
			}
		})
		worked = time.Since(began)
	}
	for batch := range slices.Chunk(t.unresolved.drain(), postgresBatch) {
		_ = t.guard.Do("flush reported state of units that were not looked up", func() {
			for _, o := range t.store(ctx, batch) {
				_ = t.unresolved.add(o) // the next report replaces one that has no room any more
			}
		})
	}
	return worked
}

// store returns the observations that were not written and must be retried.
func (t *Twins) store(ctx context.Context, observations []observation) (left []observation) {
	seen, left, err := t.stored.observe(ctx, observations) // reports change no presence
	err = cmp.Or(err, t.stored.lockedError(ctx, seen))
	switch {
	case len(left) > 0:
		t.log.Warn("reported state not written to postgres, retrying", "vehicles", t.toPostgres.size()+len(left), "err", err)
	case err != nil:
		t.log.Error("reported state refused by postgres", "err", err)
	}
	return left
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
		case <-t.toRedis.queuedSome:
		}
		t.awaited.clear() // the reports awaited so far are in this flush
		began := time.Now()
		if t.flushRedis(ctx, publish) {
			t.pauseRedis(ctx, pause(time.Since(began), redisShare), began)
		} else {
			t.redisLost.set()
			sleep(ctx, unavailable.RetryAfter)
		}
	}
}

// pauseRedis waits until the time has passed, and redisEvery since the flush began, or until the
// context ends, or a caller awaits a report.
func (t *Twins) pauseRedis(ctx context.Context, d time.Duration, began time.Time) {
	sleep(ctx, min(d, awaitedPause))
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

// flushRedis writes all queued states, and publishes their changes. Merging is done here; Redis
// only compares and swaps: a section that another instance has replaced meanwhile is returned,
// merged and written again. It reports false where Redis could not be reached; then all states
// stay queued.
func (t *Twins) flushRedis(ctx context.Context, publish func([]telematics.Change)) bool {
	reached := true
	var cold []*state
	defer func() {
		t.toRedis.end()
		t.cache.drop(cold)
	}()
	for batch := range slices.Chunk(t.toRedis.begin(), redisBatch) {
		for _, s := range batch {
			s.beginFlush()
		}
		left := batch
		if reached {
			left = nil
			for _, s := range t.isolate("flush reported state to redis", batch, func(part []*state) {
				more, ok := t.flushBatch(ctx, part, publish)
				left, reached = append(left, more...), reached && ok
			}) {
				s.endFlush(false)
			}
			cold = append(cold, slices.DeleteFunc(slices.Clone(batch), (*state).isHot)...)
		}
		for _, s := range left {
			s.endFlush(false)
		}
		t.toRedis.putBack(left...)
		if !reached {
			t.toPostgres.add(left...)
		}
	}
	return reached
}

// flushBatch writes a batch to Redis. It returns the states that are not written completely.
func (t *Twins) flushBatch(ctx context.Context, batch []*state, publish func([]telematics.Change)) (left []*state, reached bool) {
	if err := t.load(ctx, batch); err != nil {
		t.recordWrite(ctx, err)
		return batch, false
	}
	changed := make(map[*state]telematics.Snapshot, len(batch))
	left = batch
	var dueNow, more []*state
	var err error
	for round := 0; len(left) > 0 && round < redisRounds && err == nil; round++ {
		left, more, err = t.updateRedis(ctx, left, changed)
		dueNow = append(dueNow, more...)
	}
	if err == nil {
		err = t.dues.makeDue(ctx, dueNow)
	}
	if err != nil {
		left = batch
	}
	for _, s := range batch { // before publishing, which may take long
		if !slices.Contains(left, s) {
			s.endFlush(true)
		}
	}
	if changes := t.changes(ctx, changed); len(changes) > 0 && publish != nil {
		publish(changes)
	}
	return left, err == nil
}

// updateRedis makes one round trip, and adds the changes to changed. It returns the states that
// are not written completely, and those that are due in Postgres now.
func (t *Twins) updateRedis(
	ctx context.Context, states []*state, changed map[*state]telematics.Snapshot,
) (left, dueNow []*state, err error) {
	defer tracing.Step(ctx, delivery.StepMerge).End()
	updates := make([]update, len(states))
	for i, s := range states {
		if updates[i], err = s.update(); err != nil { // never for the types of ParseValue
			t.log.Error("section not encoded", "vehicle", s.vehicle, "err", err)
		}
	}
	marks := t.dues.newMarks(ctx, updates)
	outcomes, err := t.redis.update(ctx, updates, marks.add)
	err = cmp.Or(err, marks.err())
	t.recordWrite(ctx, err)
	if err != nil {
		return states, nil, err
	}
	for i, u := range updates {
		s := u.state
		if outcomes[i].err != nil {
			t.log.Warn("reported state refused by redis", "vehicle", s.vehicle, "err", outcomes[i].err)
			s.endFlush(false)
			t.loseRedis(s)
			continue // the next report is written
		}
		fresh, again, emptied := u.apply(outcomes[i])
		if t.changesConnectivity(u, outcomes[i]) {
			dueNow = append(dueNow, s)
		}
		if before, repeated := changed[s]; repeated {
			fresh = telematics.Join(before, fresh)
		}
		if changed[s] = fresh; again {
			left = append(left, s)
		}
		if emptied {
			t.loseRedis(s)
		}
	}
	return left, dueNow, nil
}

// loseRedis queues a state to be written to Postgres by this instance, because Redis has lost or
// refused it.
func (t *Twins) loseRedis(s *state) {
	t.toPostgres.add(s)
	t.redisLost.set()
}

func (t *Twins) recordWrite(ctx context.Context, err error) {
	if ctx.Err() == nil {
		t.writing.Record(err)
	}
}

// load merges states that are new in the cache with those in Redis and Postgres, so that their
// first reports are compared with the stored state.
func (t *Twins) load(ctx context.Context, states []*state) error {
	states = slices.DeleteFunc(slices.Clone(states), (*state).isLoaded)
	if len(states) == 0 {
		return nil
	}
	ids := make([]telematics.VehicleID, len(states))
	for i, s := range states {
		ids[i] = s.vehicle
	}
	shared, err := t.redis.read(ctx, ids)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(ids), func(id telematics.VehicleID) bool { return shared[id].base != "" })
	stored := t.loadStored(ctx, missing)
	for _, s := range states {
		s.load(shared[s.vehicle], stored[s.vehicle])
	}
	return nil
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
func (t *Twins) changes(ctx context.Context, changed map[*state]telematics.Snapshot) []telematics.Change {
	maps.DeleteFunc(changed, func(_ *state, fields telematics.Snapshot) bool { return len(fields) == 0 })
	units := make([]telematics.Unit, 0, len(changed))
	for s := range changed {
		units = append(units, s.unit)
	}
	owners := t.owners.resolve(ctx, units)
	list := make([]telematics.Change, 0, len(changed))
	for s, fields := range changed {
		change := s.change(fields)
		if o, ok := owners[s.unit]; ok {
			if o.vehicle != s.vehicle { // the unit was built into another one since
				continue
			}
			change.Agency, change.Powertrain = o.agency, o.powertrain
		}
		list = append(list, change)
	}
	return list
}
