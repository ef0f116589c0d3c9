package twins

import (
	"context"
	"errors"
	"time"

	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// load reads the parts of vehicles from which their states are loaded.
func (p stored) load(
	ctx context.Context, ids []telematics.VehicleID, newBase func(int64) base,
) (map[telematics.VehicleID]*storedTwin, error) {
	found := make(map[telematics.VehicleID]*storedTwin, len(ids))
	var id telematics.VehicleID
	var seen, updated time.Time
	var announced telematics.PresenceStatus
	var fields []byte
	err := pg.Each(ctx, p.Prepared, []any{&id, pg.UTC(&seen), &announced, &fields, pg.UTC(&updated)}, func() error {
		snapshot, err := vehicles.DecodeSnapshot(fields)
		found[id] = &storedTwin{snapshot: snapshot, base: newBase(version(updated)), seen: seen, offline: isOffline(announced)}
		return err
	}, `
		select u.vehicle_id, u.last_seen, u.announced, s.fields, s.updated_at
		from units u left join snapshots s on s.vehicle_id = u.vehicle_id
		where u.vehicle_id = any ($1)`, pq.Array(ids))
	if err != nil {
		return nil, unavailable.Wrap("read snapshots", err)
	}
	return found, nil
}

// version returns the version of a snapshot by its updated_at; zero: there is none.
func version(updated time.Time) int64 {
	if updated.IsZero() {
		return 0
	}
	return updated.UnixMicro()
}

// dueState is a state in Redis that is due.
type dueState struct {
	vehicle telematics.VehicleID
	redisState
}

// storeDue writes states to Postgres. It returns those that are stored now, and the vehicles
// whose states may be stored later, because Postgres is unavailable or another transaction has
// locked their units. Most states replace the snapshot in Postgres unread, because Redis includes
// it (base); the others are merged. The error also names the units whose states were refused.
func (p stored) storeDue(
	ctx context.Context, states []dueState, newBase func(int64) base,
) (done []storedState, left []telematics.VehicleID, err error) {
	observations, read := make([]observation, len(states)), make(map[telematics.VehicleID]redisState, len(states))
	for i, s := range states {
		o := observation{vehicle: s.vehicle, readings: s.snapshot, reports: s.reports, base: s.base}
		o.Unit, o.At = s.unit, s.seen
		observations[i], read[s.vehicle] = o, s.redisState
	}
	seen, written, later, err := p.write(ctx, observations)
	for _, c := range written {
		s := storedState{vehicle: c.vehicle, read: read[c.vehicle]}
		if !c.more {
			s.base = newBase(c.version)
		}
		done = append(done, s)
	}
	for _, o := range later {
		left = append(left, o.vehicle)
	}
	return done, left, errors.Join(err, p.lockedError(ctx, seen))
}
