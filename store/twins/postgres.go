package twins

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// observation is one observation of a unit, or several merged into one.
type observation struct {
	delivery.Observation
	readings telematics.Snapshot // each with its own time
	reports  int
	// The vehicle that the readings are of, whose unit and protocol were looked up; zero: the
	// present vehicle of the unit.
	vehicle telematics.VehicleID
	base    base // that the readings include; empty: Postgres may have more
}

func newObservation(o delivery.Observation) observation {
	merged := observation{Observation: o}
	merged.At = pg.FromTimestamp(pg.Timestamp(o.At)) // cut like stored times
	if o.Report != nil {
		merged.readings, merged.reports = telematics.Merge(nil, *o.Report), 1
	}
	return merged
}

// merge returns two observations of a unit as one.
func (o observation) merge(other observation) observation {
	if o.Unit == "" {
		return other
	}
	if o.At.After(other.At) {
		other.At = o.At
	}
	other.reports += o.reports
	other.readings = telematics.Join(o.readings, other.readings)
	return other
}

// contact returns the contact c as it is after the observation.
func (o observation) contact(c telematics.Contact) telematics.Contact {
	if o.Presence != nil {
		return o.Contact(c)
	}
	return c.ReportedTimes(o.reports, o.At)
}

// stored reads and writes the contacts and the snapshots in Postgres.
type stored struct{ *pg.DB }

// Store writes observations to Postgres directly, for programs that have no Redis. They are
// committed when it returns.
func Store(ctx context.Context, db *pg.DB, observations []delivery.Observation) (delivery.Seen, error) {
	merged := make([]observation, len(observations))
	for i, o := range observations {
		merged[i] = newObservation(o)
	}
	return stored{db}.observeAll(ctx, merged)
}

// observeAll is observe, and tries those again whose units are locked.
func (p stored) observeAll(ctx context.Context, observations []observation) (all delivery.Seen, err error) {
	for retries := p.NewRetries(); ; {
		seen, left, err := p.observe(ctx, observations)
		locked := seen.Locked
		seen.Locked = nil
		addSeen(&all, seen)
		if err != nil || len(locked) == 0 {
			return all, err
		}
		if !retries.Next(ctx) {
			all.Locked = locked
			return all, p.lockedError(ctx, all)
		}
		observations = left
	}
}

// observe merges observations into the contacts of units and the snapshots of their vehicles,
// whatever the order of arrival [LAW-7]. They are committed when observe returns, except those
// that it returns: these may be stored later, because another transaction has locked their units,
// or because of the error. That also names the units whose observations were refused.
func (p stored) observe(ctx context.Context, observations []observation) (seen delivery.Seen, left []observation, err error) {
	seen, _, left, err = p.write(ctx, observations)
	return seen, left, err
}

// committed is a snapshot that Postgres has after an observation.
type committed struct {
	vehicle telematics.VehicleID
	version int64
	more    bool // it has readings that were not observed
}

// write is observe, and also returns what it has committed.
func (p stored) write(
	ctx context.Context, observations []observation,
) (seen delivery.Seen, done []committed, left []observation, err error) {
	if len(observations) == 0 {
		return delivery.Seen{}, nil, nil, nil
	}
	var refused []error
	left, err = pg.InParts(p.DB, observations, func(part []observation) error {
		some, written, err := p.writeTogether(ctx, part)
		addSeen(&seen, some)
		done = append(done, written...)
		return err
	}, func(o observation, err error) {
		refused = append(refused, unavailable.Wrap("observe unit "+string(o.Unit), err))
	})
	for _, o := range observations {
		if slices.Contains(seen.Locked, o.Unit) {
			left = append(left, o)
		}
	}
	return seen, done, left, errors.Join(append(refused, unavailable.Wrap("observe vehicles", err))...)
}

// lockedError counts locked units, and returns an error that names the lock of the first; nil:
// none.
func (p stored) lockedError(ctx context.Context, seen delivery.Seen) error {
	if len(seen.Locked) == 0 {
		return nil
	}
	return p.RowLocked(ctx, "unit "+string(seen.Locked[0]), "units", "serial", string(seen.Locked[0]))
}

func addSeen(all *delivery.Seen, seen delivery.Seen) {
	for _, unit := range seen.Unknown {
		all.Unknown = appendNew(all.Unknown, unit)
	}
	for _, unit := range seen.Foreign {
		all.Foreign = appendNew(all.Foreign, unit)
	}
	for _, unit := range seen.Locked {
		all.Locked = appendNew(all.Locked, unit)
	}
	all.Changes = append(all.Changes, seen.Changes...)
	all.Ghosts, all.Overtaken = all.Ghosts+seen.Ghosts, all.Overtaken+seen.Overtaken
	all.Reconnected = append(all.Reconnected, seen.Reconnected...)
}

func appendNew(units []telematics.Unit, unit telematics.Unit) []telematics.Unit {
	if slices.Contains(units, unit) {
		return units
	}
	return append(units, unit)
}

// updateState locks the unit before its snapshot, as observeIn does, so that neither can
// overwrite what the other has merged meanwhile.
var updateState = `
	with unit as (
		update units u set last_seen = $3, gap_ms = $4, check_at = ` + vehicles.CheckAfterReport + `
		where serial = $1 and vehicle_id = $2 and last_seen is not distinct from $5
		returning vehicle_id)
	update snapshots s set fields = $6, updated_at = clock_timestamp()
	from unit
	where s.vehicle_id = unit.vehicle_id and s.fields = $7`

// update replaces the state before, as it was read, by the state after: in one round trip if
// Postgres still has the state before, else as an observation. It is committed when update
// returns.
func (p stored) update(ctx context.Context, before, after telematics.Twin) error {
	old, errOld := vehicles.EncodeSnapshot(before.Snapshot)
	fields, errNew := vehicles.EncodeSnapshot(after.Snapshot)
	if err := errors.Join(errOld, errNew); err != nil {
		return err
	}
	contact := before.Contact.Reported(after.Contact.LastSeen)
	done, err := p.Prepared.ExecContext(ctx, updateState, string(after.Unit), int64(after.ID),
		pg.Timestamp(contact.LastSeen), pg.Nullable(contact.Gap.Milliseconds()), pg.Timestamp(before.Contact.LastSeen),
		string(fields), string(old))
	if err != nil {
		return unavailable.Wrap("store reported state", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 1 {
		return err
	}
	o := observation{vehicle: after.ID, readings: after.Snapshot, reports: 1}
	o.Unit, o.At = after.Unit, contact.LastSeen
	_, err = p.observeAll(ctx, []observation{o})
	return err
}

// observedUnit is a unit, with its vehicle, while observations are merged into it.
type observedUnit struct {
	serial    telematics.Unit
	protocol  telematics.Protocol
	change    telematics.Change // of its vehicle
	announced telematics.PresenceStatus
	spoke     bool // it has sent presence
	contact   telematics.Contact
	observed  bool
	heard     bool                // its latest sign of life is newer
	snapshot  telematics.Snapshot // nil where the observation includes it
	version   int64               // of the snapshot in Postgres; zero: there is none
	newer     bool                // the snapshot has readings that Postgres does not have
	more      bool                // it has readings that were not observed
}

// writeTogether is one transaction: compare-and-set under the locks of the units [LAW-7]. It
// waits for none: a unit that another transaction has locked is in the result.
func (p stored) writeTogether(ctx context.Context, observations []observation) (seen delivery.Seen, done []committed, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	err = p.Prepared.Within(ctx, func(ctx context.Context, tx *pg.Tx) (err error) {
		seen, done, err = writeIn(ctx, tx, observations)
		return err
	})
	if err != nil {
		return delivery.Seen{}, nil, err
	}
	return seen, done, nil
}

func writeIn(ctx context.Context, tx *pg.Tx, observations []observation) (delivery.Seen, []committed, error) {
	units, locked, err := lockUnits(ctx, tx, observations)
	if err != nil {
		return delivery.Seen{}, nil, err
	}
	seen := delivery.Seen{Locked: locked}
	observations = slices.DeleteFunc(slices.Clone(observations), func(o observation) bool {
		unit, ok := units[o.Unit]
		switch {
		case !ok && slices.Contains(locked, o.Unit):
		case !ok:
			seen.Unknown = appendNew(seen.Unknown, o.Unit)
		case o.vehicle == 0 && !o.Protocol.Means(unit.protocol):
			seen.Foreign = appendNew(seen.Foreign, o.Unit)
		default: // or the unit has moved to another vehicle
			return o.vehicle != 0 && o.vehicle != unit.change.Vehicle
		}
		return true
	})
	if err := readSnapshots(ctx, tx, units, observations); err != nil {
		return delivery.Seen{}, nil, err
	}
	for _, o := range observations {
		unit := units[o.Unit]
		seen.CountPresence(unit.contact, o.Observation)
		unit.observe(o)
		unit.spoke = unit.spoke || o.Presence != nil
		unit.change.Alarms = append(unit.change.Alarms, alarmsOf(o.Observation)...)
	}
	maps.DeleteFunc(units, func(_ telematics.Unit, unit *observedUnit) bool { return !unit.observed })
	now := time.Now()
	for _, unit := range units {
		unit.announce(now)
	}
	if err := writeUnits(ctx, tx, units); err != nil {
		return delivery.Seen{}, nil, err
	}
	var done []committed
	for _, unit := range units {
		done = append(done, committed{vehicle: unit.change.Vehicle, version: unit.version, more: unit.more})
		if !unit.change.Empty() {
			seen.Changes = append(seen.Changes, unit.change)
		}
	}
	return seen, done, nil
}

// announce notes the unit's connectivity, where a presence message has changed it: the instance
// that stores it publishes it. Changes by reports are left to vehicles.Fleet.Aged.
func (u *observedUnit) announce(now time.Time) {
	if is := u.contact.At(now); u.spoke && is != u.announced {
		u.announced, u.change.Presence = is, is
	}
}

func (u *observedUnit) observe(o observation) {
	contact, before := o.contact(u.contact), u.snapshot
	u.observed, u.heard = true, u.heard || contact.LastSeen.After(u.contact.LastSeen)
	u.contact, u.change.LastSeen = contact, contact.LastSeen
	switch {
	case len(o.readings) == 0:
	case before == nil:
		u.snapshot, u.newer = o.readings, true // nothing modifies the readings any more
	default:
		u.snapshot = telematics.Join(before, o.readings)
		u.newer, u.more = u.newer || differ(u.snapshot, before), u.more || differ(u.snapshot, o.readings)
	}
}

// differ reports whether a snapshot has other readings than one that it was made from.
func differ(joined, from telematics.Snapshot) bool {
	for field, reading := range joined {
		r, ok := from[field]
		if !ok || !r.At.Equal(reading.At) || r.Once != reading.Once || !telematics.SameValue(r.Value, reading.Value) {
			return true
		}
	}
	return false
}

// lockUnits locks the observed units that are built into vehicles, and returns them, and those
// that another transaction has locked.
func lockUnits(
	ctx context.Context, tx *pg.Tx, observations []observation,
) (_ map[telematics.Unit]*observedUnit, locked []telematics.Unit, _ error) {
	serials := make([]string, len(observations))
	for i, o := range observations {
		serials[i] = string(o.Unit)
	}
	units := make(map[telematics.Unit]*observedUnit, len(observations))
	err := tx.Each(ctx, `
		select u.serial, u.vehicle_id, u.protocol, v.agency_id, v.powertrain, u.announced, `+vehicles.ContactColumns+`
		from units u join vehicles v on v.id = u.vehicle_id
		where u.serial = any ($1)
		order by u.vehicle_id
		for update of u skip locked`,
		[]any{pq.Array(serials)}, func(found *sql.Rows) error {
			var u observedUnit
			var r vehicles.ContactRow
			c := &u.change
			if err := found.Scan(&u.serial, &c.Vehicle, &u.protocol, &c.Agency, &c.Powertrain, &u.announced,
				&r.Status, &r.Session, &r.Former, &r.SaidAt, &r.ChangedAt, &r.LastSeen,
				&r.Actions, &r.Keys, &r.Firmware, &r.GapMS); err != nil {
				return err
			}
			u.contact = r.Contact()
			units[u.serial] = &u
			return nil
		})
	if err != nil {
		return nil, nil, err
	}
	locked, err = selectLocked(
		ctx, tx, slices.DeleteFunc(serials, func(serial string) bool { return units[telematics.Unit(serial)] != nil }),
	)
	return units, locked, err
}

// selectLocked returns the units that have a vehicle, of those that were not found when others
// were passed over because of their locks.
func selectLocked(ctx context.Context, tx *pg.Tx, missing []string) (locked []telematics.Unit, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	err = tx.Select(ctx, &locked, `select serial from units where serial = any ($1) and vehicle_id is not null`, pq.Array(missing))
	return locked, err
}

// readSnapshots reads the versions of the snapshots of observed vehicles, which the locks of the
// units guard, and the snapshots that an observation does not include.
func readSnapshots(ctx context.Context, tx *pg.Tx, units map[telematics.Unit]*observedUnit, observations []observation) error {
	bases := make(map[*observedUnit]base, len(observations)) // presence alone changes no snapshot
	for _, o := range observations {
		if unit := units[o.Unit]; len(o.readings) > 0 {
			bases[unit] = o.base
		}
	}
	if len(bases) == 0 {
		return nil
	}
	ids, versions := make([]int64, 0, len(bases)), make([]string, 0, len(bases))
	byVehicle := make(map[telematics.VehicleID]*observedUnit, len(bases))
	for unit, base := range bases {
		at := "-infinity"
		if micros, ok := base.version(); ok {
			at = time.UnixMicro(micros).UTC().Format(time.RFC3339Nano)
		}
		ids, versions = append(ids, int64(unit.change.Vehicle)), append(versions, at)
		byVehicle[unit.change.Vehicle] = unit
	}
	return tx.Each(ctx, `
		select vehicle_id, s.updated_at, case when s.updated_at <> n.updated_at then s.fields end
		from unnest($1::bigint[], $2::timestamptz[]) as n (vehicle_id, updated_at) join snapshots s using (vehicle_id)`,
		[]any{pq.Array(ids), pq.Array(versions)}, func(found *sql.Rows) error {
			var id telematics.VehicleID
			var at time.Time
			var fields []byte
			if err := found.Scan(&id, &at, &fields); err != nil {
				return err
			}
			unit := byVehicle[id]
			unit.version = version(&at)
			if fields == nil {
				return nil
			}
			var err error
			unit.snapshot, err = vehicles.DecodeSnapshot(fields)
			return err
		})
}

// unitRow is a row of units, as it is written.
type unitRow struct {
	Serial    string                     `json:"serial"`
	Status    *telematics.PresenceStatus `json:"status"`
	Session   string                     `json:"session"`
	Former    []string                   `json:"former_sessions"`
	SaidAt    *time.Time                 `json:"said_at"`
	ChangedAt *time.Time                 `json:"changed_at"`
	LastSeen  *time.Time                 `json:"last_seen"`
	Actions   []telematics.Action        `json:"actions"`
	Keys      []string                   `json:"keys"`
	Firmware  string                     `json:"firmware"`
	GapMS     *int64                     `json:"gap_ms"`
	Announced telematics.PresenceStatus  `json:"announced"`
}

type snapshotRow struct {
	of     *observedUnit
	fields json.RawMessage
}

func writeUnits(ctx context.Context, tx *pg.Tx, units map[telematics.Unit]*observedUnit) error {
	var contacts []unitRow
	signs := make([][]any, 0, len(units))
	snapshots := make([]snapshotRow, 0, len(units))
	for _, u := range units {
		if u.spoke {
			contacts = append(contacts, unitRow{
				Serial: string(u.serial), Status: pg.Nullable(u.contact.Status), Session: u.contact.Session,
				Former: append([]string{}, u.contact.Former...), SaidAt: pg.Timestamp(u.contact.SaidAt),
				ChangedAt: pg.Timestamp(u.contact.ChangedAt), LastSeen: pg.Timestamp(u.contact.LastSeen),
				Actions: u.contact.Actions, Keys: u.contact.Keys, Firmware: u.contact.Firmware,
				GapMS: pg.Nullable(u.contact.Gap.Milliseconds()), Announced: u.announced,
			})
		} else if u.heard {
			signs = append(signs, []any{string(u.serial), pg.Timestamp(u.contact.LastSeen), pg.Nullable(u.contact.Gap.Milliseconds())})
		}
		if !u.newer {
			continue
		}
		fields, err := vehicles.EncodeSnapshot(u.snapshot)
		if err != nil {
			return err
		}
		snapshots = append(snapshots, snapshotRow{of: u, fields: fields})
	}
	if err := writeContacts(ctx, tx, contacts); err != nil {
		return err
	}
	if err := writeSignsOfLife(ctx, tx, signs); err != nil {
		return err
	}
	return writeSnapshots(ctx, tx, snapshots)
}

// signsOfLife are the columns of a contact that a report changes.
var signsOfLife = pg.RowSet{Name: "n", Columns: []string{"serial text", "last_seen timestamptz", "gap_ms bigint"}}

var updateSignsOfLife = `
	with ` + signsOfLife.Many() + `
	update units u set last_seen = n.last_seen, gap_ms = n.gap_ms, check_at = ` + vehicles.CheckAfterReport + `
	from n
	where u.serial = n.serial and u.serial = any ($1)`

func writeSignsOfLife(ctx context.Context, tx *pg.Tx, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, updateSignsOfLife, pg.Arrays(rows)...)
	return err
}

func writeContacts(ctx context.Context, tx *pg.Tx, rows []unitRow) error {
	if len(rows) == 0 {
		return nil
	}
	serials := make([]string, len(rows)) // show the planner how few they are
	for i, row := range rows {
		serials[i] = row.Serial
	}
	_, err := tx.ExecContext(ctx, `
		update units u
		set status = n.status, session = n.session, former_sessions = n.former_sessions, said_at = n.said_at, changed_at = n.changed_at,
			last_seen = n.last_seen, actions = n.actions, keys = n.keys, firmware = n.firmware, gap_ms = n.gap_ms,
			announced = n.announced, check_at = `+vehicles.CheckAfterPresence+`
		from json_to_recordset($1) as n (
			serial text, status text, session text, former_sessions text[], said_at timestamptz, changed_at timestamptz,
			last_seen timestamptz, actions text[], keys text[], firmware text, gap_ms bigint, announced text)
		where u.serial = n.serial and u.serial = any ($2)`,
		pg.JSONRecords(rows), pq.Array(serials))
	return err
}

// writeSnapshots inserts or replaces snapshots, and notes their new versions.
func writeSnapshots(ctx context.Context, tx *pg.Tx, rows []snapshotRow) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b snapshotRow) int { return cmp.Compare(a.of.change.Vehicle, b.of.change.Vehicle) })
	ids, fields := make([]int64, len(rows)), make([]string, len(rows))
	byVehicle := make(map[telematics.VehicleID]*observedUnit, len(rows))
	for i, row := range rows {
		ids[i], fields[i] = int64(row.of.change.Vehicle), string(row.fields)
		byVehicle[row.of.change.Vehicle] = row.of
	}
	return tx.Each(ctx, `
		insert into snapshots (vehicle_id, fields, updated_at)
		select vehicle_id, fields, clock_timestamp() from unnest($1::bigint[], $2::jsonb[]) as n (vehicle_id, fields)
		on conflict (vehicle_id) do update set fields = excluded.fields, updated_at = excluded.updated_at
		returning vehicle_id, updated_at`,
		[]any{pq.Array(ids), pq.Array(fields)}, func(written *sql.Rows) error {
			var id telematics.VehicleID
			var at time.Time
			err := written.Scan(&id, &at)
			byVehicle[id].version = version(&at)
			return err
		})
}
