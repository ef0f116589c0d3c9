package twins

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
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
			snapshot: snapshot, base: newBase(version(row.UpdatedAt)), seen: pg.FromTimestamp(row.LastSeen),
			offline: isOffline(row.Announced),
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

// storeDue writes states to Postgres. It returns those that are stored now, and the vehicles
// whose states may be stored later, because Postgres is unavailable or another transaction has
// locked their units. Most states replace the snapshot in Postgres unread, because Redis includes
// it (base); the others are merged. The error also names the units whose states were refused.
func (p stored) storeDue(
	ctx context.Context, states []dueState, newBase func(int64) base,
) (done []storedState, left []telematics.VehicleID, err error) {
	if len(states) == 0 {
		return nil, nil, nil
	}
	var refused []error
	waiting, err := pg.InParts(p.DB, states, func(part []dueState) error {
		some, locked, err := p.storeDueTogether(ctx, part, newBase)
		done = append(done, some...)
		for _, s := range part {
			if slices.Contains(locked, s.unit) {
				left = append(left, s.vehicle)
			}
		}
		return err
	}, func(s dueState, err error) {
		refused = append(refused, unavailable.Wrap("store reported state of unit "+string(s.unit), err))
	})
	if len(left) > 0 {
		refused = append(refused, p.RowLocked(ctx, fmt.Sprintf("the unit of vehicle %d", left[0]), "units", "vehicle_id", int64(left[0])))
	}
	for _, s := range waiting {
		left = append(left, s.vehicle)
	}
	return done, left, errors.Join(append(refused, unavailable.Wrap("store reported state", err))...)
}

func (p stored) storeDueTogether(
	ctx context.Context, states []dueState, newBase func(int64) base,
) (done []storedState, locked []telematics.Unit, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	err = p.Prepared.Within(ctx, func(ctx context.Context, tx *pg.Tx) (err error) {
		done, locked, err = storeDueIn(ctx, tx, states, newBase)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return done, locked, nil
}

// lockedUnit is a unit whose vehicle's state is due, while it is written.
type lockedUnit struct {
	vehicle telematics.VehicleID
	contact telematics.Contact
}

// storeDueIn is one transaction: compare-and-set under the locks of the units [LAW-7]. It waits
// for none, and returns the units that another transaction has locked.
func storeDueIn(
	ctx context.Context, tx *pg.Tx, states []dueState, newBase func(int64) base,
) (_ []storedState, locked []telematics.Unit, _ error) {
	units, locked, err := lockDue(ctx, tx, states)
	if err != nil {
		return nil, nil, err
	}
	// The state of a unit that has moved to another vehicle is not written.
	states = slices.DeleteFunc(slices.Clone(states), func(s dueState) bool { return units[s.unit].vehicle != s.vehicle })
	versions, err := selectVersions(ctx, tx, states)
	if err != nil {
		return nil, nil, err
	}
	unknown, err := snapshotsUnknownTo(ctx, tx, states, versions)
	if err != nil {
		return nil, nil, err
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
			return nil, nil, err
		}
		rows = append(rows, snapshotRow{VehicleID: s.vehicle, Fields: fields})
	}
	if err := writeSignsOfLife(ctx, tx, signs); err != nil {
		return nil, nil, err
	}
	written, err := writeSnapshots(ctx, tx, rows)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range done {
		if at, ok := written[s.vehicle]; ok && s.base != "" {
			done[i].base = newBase(at)
		}
	}
	return done, locked, nil
}

// joinBoth merges the snapshots of Postgres (there) and Redis (here), and reports whether Redis
// has newer readings than Postgres (ahead), and the reverse (behind).
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

// lockDue locks the units of the states that are built into vehicles, and returns them, and those
// that another transaction has locked.
func lockDue(ctx context.Context, tx *pg.Tx, states []dueState) (_ map[telematics.Unit]lockedUnit, locked []telematics.Unit, _ error) {
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
		for update skip locked`,
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
	if err == nil {
		locked, err = selectLocked(
			ctx, tx,
			slices.DeleteFunc(serials, func(serial string) bool { return units[telematics.Unit(serial)].vehicle != 0 }),
		)
	}
	return units, locked, err
}

// selectVersions returns the versions of the snapshots, which the locks of the units guard; zero:
// there is none.
func selectVersions(ctx context.Context, tx *pg.Tx, states []dueState) (map[telematics.VehicleID]int64, error) {
	ids := make([]int64, len(states))
	for i, s := range states {
		ids[i] = int64(s.vehicle)
	}
	versions := make(map[telematics.VehicleID]int64, len(states))
	err := tx.Each(
		ctx, `select vehicle_id, updated_at from snapshots where vehicle_id = any ($1)`, []any{pq.Array(ids)},
		func(found *sql.Rows) error {
			var id telematics.VehicleID
			var at time.Time
			err := found.Scan(&id, &at)
			versions[id] = version(&at)
			return err
		},
	)
	return versions, err
}

// snapshotsUnknownTo returns the snapshots of the vehicles of which Redis may not have
// everything; an empty one where there is none.
func snapshotsUnknownTo(
	ctx context.Context, tx *pg.Tx, states []dueState, versions map[telematics.VehicleID]int64,
) (map[telematics.VehicleID]telematics.Snapshot, error) {
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
