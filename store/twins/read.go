package twins

import (
	"context"
	"slices"
	"time"

	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/telematics"
)

// Twin returns a vehicle with its present reported state, or a *telematics.Error with
// VehicleNotFound.
func (t *Twins) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, _, err := t.read(ctx, id)
	if err != nil {
		return telematics.Twin{}, err
	}
	t.cacheRecord(&twin)
	return twin, nil
}

// DurableTwin is Twin for a reader that may keep the result: state that Postgres does not have yet
// is written there first, so that no later read returns an older state, whatever fails. Where that
// fails, or takes longer than redis.ReadTimeout, the result is returned all the same, as Unstored.
func (t *Twins) DurableTwin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, stored, err := t.read(ctx, id)
	if err != nil || stored == nil {
		return twin, err
	}
	writing, cancel := context.WithTimeout(ctx, redis.ReadTimeout)
	defer cancel()
	err = t.stored.update(writing, *stored, twin)
	if err != nil {
		t.log.DebugContext(ctx, "reported state returned before it was stored", "vehicle", id, "err", err)
	}
	twin.Unstored = err != nil
	return twin, nil
}

// read returns a vehicle, and also its state in Postgres where that is older. It reads Redis and
// Postgres concurrently, Postgres in another goroutine: that needs more stack, which the caller's
// goroutine would keep while it waits for the vehicle's answer.
func (t *Twins) read(ctx context.Context, id telematics.VehicleID) (twin telematics.Twin, less *telematics.Twin, err error) {
	type result struct {
		twin telematics.Twin
		err  error
	}
	own := t.ownStates(id)
	stored := make(chan *result, 1)
	go func() {
		found := new(result)
		found.err = t.guard.Try("read state in postgres", func() (err error) {
			found.twin, err = t.vehicles.Twin(ctx, id)
			return err
		})
		stored <- found
	}()
	shared := t.readRedis(ctx, []telematics.VehicleID{id})
	found := <-stored
	if found.err != nil {
		return telematics.Twin{}, nil, found.err
	}
	twin = found.twin
	twin.Snapshot = slices.Clone(twin.Snapshot)
	if t.join(&twin, own, shared); twin.Unstored {
		less = &found.twin
	}
	return twin, less, nil
}

// Twins returns vehicles with their present reported states, by descending id, which is also the
// cursor of the pages. It stores nothing: see Unstored. A query for a connectivity uses the
// contacts in Postgres, which may be a moment old; where the present contact does not match the
// query, the one from Postgres is returned.
func (t *Twins) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	now := time.Now()
	twins, err := t.vehicles.Twins(ctx, q)
	if err != nil || len(twins) == 0 {
		return twins, err
	}
	ids := pg.Map(twins, func(t telematics.Twin) telematics.VehicleID { return t.ID })
	own := t.ownStates(ids...)
	shared := t.readRedis(ctx, ids)
	for i, twin := range twins {
		t.join(&twins[i], own, shared)
		if q.Connectivity != "" && twins[i].Contact.At(now) != q.Connectivity {
			twins[i].Contact = twin.Contact
		}
	}
	return twins, nil
}

// ownStates returns the states of vehicles that are queued or kept here. Do not change them. Call
// it before reading Redis: a state that is written there meanwhile may leave the queue.
func (t *Twins) ownStates(ids ...telematics.VehicleID) map[telematics.VehicleID]redisState {
	own := make(map[telematics.VehicleID]redisState, len(ids))
	for _, id := range ids {
		s, found := t.queue.find(id)
		hot, isHot := t.hot.Peek(id)
		switch {
		case !found && isHot:
			s = hot.redisState // which join does not change
		case found && isHot && s.unit == hot.unit:
			s.merge(hot.seen, hot.snapshot.All())
		}
		if found || isHot {
			own[id] = s
		}
	}
	return own
}

// join merges the states of this instance and of Redis into a vehicle from Postgres, and notes
// whether Postgres lacks a part of them. States of a unit that the vehicle does not have any more
// are ignored.
func (t *Twins) join(twin *telematics.Twin, own, shared map[telematics.VehicleID]redisState) {
	for _, s := range []redisState{shared[twin.ID], own[twin.ID]} {
		if twin.Unit == "" || s.unit != twin.Unit || s.seen.Before(twin.UnitMovedAt) {
			continue
		}
		twin.Unstored = twin.Unstored || s.seen.After(twin.Contact.LastSeen)
		twin.Contact = twin.Contact.Heard(s.seen)
		for field, reading := range s.snapshot.All() {
			if twin.Snapshot == nil {
				twin.Snapshot = telematics.NewSnapshot()
			}
			newer, _ := twin.Snapshot.KeepNewer(field, reading) // no other reader has this snapshot
			twin.Unstored = twin.Unstored || newer
		}
	}
}

// readRedis returns the states of vehicles in Redis; none while it is unavailable, which must not
// delay a read.
func (t *Twins) readRedis(ctx context.Context, ids []telematics.VehicleID) map[telematics.VehicleID]redisState {
	if !t.reading.Allow() {
		return nil
	}
	reading, cancel := context.WithTimeout(ctx, redis.ReadTimeout)
	defer cancel()
	found, err := t.redis.read(reading, ids)
	if ctx.Err() == nil { // else the caller left, which does not mean that Redis failed
		t.reading.Record(err)
	}
	if err != nil {
		return nil
	}
	for _, id := range ids {
		if _, ok := found[id]; ok {
			continue
		}
		// Redis has lost it. That is noticed once, however often the vehicle is read.
		if s, ok := t.hot.Peek(id); ok && !s.lost {
			lost := *s
			lost.lost = true
			t.hot.Add(id, &lost)
			t.queue.restore(&lost)
		}
	}
	return found
}
