package twins

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// load reads the parts of vehicles from which their states are loaded.
func (p stored) load(ctx context.Context, ids []telematics.VehicleID, newBase func(int64) base) (map[telematics.VehicleID]*storedTwin, error) {
	var rows []struct {
		VehicleID telematics.VehicleID      `db:"vehicle_id"`
		LastSeen  *time.Time                `db:"last_seen"`
		Announced telematics.PresenceStatus `db:"announced"`
		Fields    []byte                    `db:"fields"`
		UpdatedAt *time.Time                `db:"updated_at"`
	}
	err := p.Prepared.Select(ctx, &rows, `
		select u.vehicle_id, u.last_seen, u.announced, s.fields, s.updated_at
		from units u left join snapshots s on s.vehicle_id = u.vehicle_id
		where u.vehicle_id = any ($1)`, pq.Array(ids))
	if err != nil {
		return nil, unavailable.Wrap("read snapshots", err)
	}
	found := make(map[telematics.VehicleID]*storedTwin, len(rows))
	for _, row := range rows {
		snapshot, err := vehicles.DecodeSnapshot(row.Fields)
		if err != nil {
			return nil, unavailable.Wrap("read snapshots", err)
		}
		found[row.VehicleID] = &storedTwin{
			snapshot: snapshot, base: newBase(version(row.UpdatedAt)), seen: pg.FromTimestamp(row.LastSeen), offline: isOffline(row.Announced),
		}
	}
	return found, nil
}

// version returns the version of a snapshot by its updated_at; zero: there is none.
func version(updated *time.Time) int64 {
	if updated == nil {
		return 0
	}
	return updated.UnixMicro()
}

// dueState is a state in Redis that is due.
type dueState struct {
	vehicle telematics.VehicleID
	redisState
}

// storeDue writes states to Postgres, and returns those that are stored now. Most replace the
// snapshot in Postgres unread, because Redis includes it (base); the others are merged. An error
// for which [unavailable.Is] is false names the units whose states were refused; the rest was
// stored.
func (p stored) storeDue(ctx context.Context, states []dueState, newBase func(int64) base) ([]storedState, error) {
	if len(states) == 0 {
		return nil, nil
	}
	done, err := p.storeDueTogether(ctx, states, newBase)
	if len(states) == 1 || !pg.Splits(err) {
		return done, unavailable.Wrap("store reported state", err)
	}
	var refused []error
	for _, s := range states { // one of them has failed the batch
		one, err := p.storeDueTogether(ctx, []dueState{s}, newBase)
		if err != nil && !pg.Splits(err) {
			return done, unavailable.Wrap("store reported state", err)
		}
		refused = append(refused, unavailable.Wrap("store reported state of unit "+string(s.unit), err))
		done = append(done, one...)
	}
	return done, errors.Join(refused...)
}

func (p stored) storeDueTogether(ctx context.Context, states []dueState, newBase func(int64) base) (done []storedState, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	err = p.Prepared.Within(ctx, func(ctx context.Context, tx *pg.Tx) (err error) {
		done, err = storeDueIn(ctx, tx, states, newBase)
		return err
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// lockedUnit is a unit whose vehicle's state is due, while it is written.
type lockedUnit struct {
	vehicle telematics.VehicleID
	contact telematics.Contact
}

// storeDueIn is one transaction: compare-and-set under the locks of the units, which are taken in
// the order of their vehicles [LAW-7].
func storeDueIn(ctx context.Context, tx *pg.Tx, states []dueState, newBase func(int64) base) ([]storedState, error) {
	units, err := lockDue(ctx, tx, states)
	if err != nil {
		return nil, err
	}
	// The state of a unit that has moved to another vehicle is not written.
	states = slices.DeleteFunc(states, func(s dueState) bool { return units[s.unit].vehicle != s.vehicle })
	versions, err := selectVersions(ctx, tx, states)
	if err != nil {
		return nil, err
	}
	unknown, err := snapshotsUnknownTo(ctx, tx, states, versions)
	if err != nil {
		return nil, err
	}
	done := make([]storedState, len(states))
	var signs [][]any
	var rows []snapshotRow
	for i, s := range states {
		u := units[s.unit]
		if s.seen.After(u.contact.LastSeen) {
			contact := u.contact.ReportedTimes(s.reports, s.seen)
			signs = append(signs, []any{string(s.unit), pg.Timestamp(contact.LastSeen), pg.Nullable(contact.Gap.Milliseconds())})
		}
		done[i] = storedState{vehicle: s.vehicle, read: s.redisState, base: newBase(versions[s.vehicle])}
		snapshot := s.snapshot
		if there, merge := unknown[s.vehicle]; merge {
			var ahead, behind bool
			if snapshot, ahead, behind = joinBoth(there, s.snapshot); behind {
				done[i].base = ""
			}
			if !ahead {
				continue
			}
		}
		if len(snapshot) == 0 {
			continue
		}
		fields, err := vehicles.EncodeSnapshot(snapshot)
		if err != nil {
			return nil, err
		}
		rows = append(rows, snapshotRow{VehicleID: s.vehicle, Fields: fields})
	}
	if err := writeSignsOfLife(ctx, tx, signs); err != nil {
		return nil, err
	}
	written, err := writeSnapshots(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	for i, s := range done {
		if at, ok := written[s.vehicle]; ok && s.base != "" {
			done[i].base = newBase(at)
		}
	}
	return done, nil
}

// joinBoth merges the snapshots of Postgres (there) and Redis (here), and reports whether Redis has
// newer readings than Postgres (ahead), and the reverse (behind).
func joinBoth(there, here telematics.Snapshot) (joined telematics.Snapshot, ahead, behind bool) {
	joined = telematics.Join(nil, here)
	if joined == nil {
		joined = telematics.Snapshot{}
	}
	for field, reading := range there {
		newer, _ := joined.KeepNewer(field, reading)
		behind = behind || newer
	}
	for field, reading := range here {
		newer, _ := there.KeepNewer(field, reading) // no other reader has this snapshot
		ahead = ahead || newer
	}
	return joined, ahead, behind
}

// lockDue locks the units of the states that are built into vehicles, and returns them.
func lockDue(ctx context.Context, tx *pg.Tx, states []dueState) (map[telematics.Unit]lockedUnit, error) {
	serials := make([]string, len(states))
	for i, s := range states {
		serials[i] = string(s.unit)
	}
	units := make(map[telematics.Unit]lockedUnit, len(states))
	err := tx.Each(ctx, `
		select serial, vehicle_id, last_seen, gap_ms
		from units
		where serial = any ($1) and vehicle_id is not null
		order by vehicle_id
		for update`,
		[]any{pq.Array(serials)}, func(found *sql.Rows) error {
			var serial telematics.Unit
			var u lockedUnit
			var seen *time.Time
			var gap *int64
			if err := found.Scan(&serial, &u.vehicle, &seen, &gap); err != nil {
				return err
			}
			u.contact = telematics.Contact{LastSeen: pg.FromTimestamp(seen), Gap: time.Duration(pg.Deref(gap)) * time.Millisecond}
			units[serial] = u
			return nil
		})
	return units, err
}

// selectVersions returns the versions of the snapshots, which the locks of the units guard; zero:
// there is none.
func selectVersions(ctx context.Context, tx *pg.Tx, states []dueState) (map[telematics.VehicleID]int64, error) {
	ids := make([]int64, len(states))
	for i, s := range states {
		ids[i] = int64(s.vehicle)
	}
	versions := make(map[telematics.VehicleID]int64, len(states))
	err := tx.Each(ctx, `select vehicle_id, updated_at from snapshots where vehicle_id = any ($1)`, []any{pq.Array(ids)}, func(found *sql.Rows) error {
		var id telematics.VehicleID
		var at time.Time
		err := found.Scan(&id, &at)
		versions[id] = version(&at)
		return err
	})
	return versions, err
}

// snapshotsUnknownTo returns the snapshots of the vehicles of which Redis may not have everything;
// an empty one where there is none.
func snapshotsUnknownTo(ctx context.Context, tx *pg.Tx, states []dueState, versions map[telematics.VehicleID]int64) (map[telematics.VehicleID]telematics.Snapshot, error) {
	var ids []telematics.VehicleID
	for _, s := range states {
		if at, ok := s.base.version(); !ok || at != versions[s.vehicle] {
			ids = append(ids, s.vehicle)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := selectSnapshots(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if found[id] == nil {
			found[id] = telematics.Snapshot{}
		}
	}
	return found, nil
}
