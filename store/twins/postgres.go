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
	delivery.Observation                     // with a report where there are readings
	readings             telematics.Snapshot // each with its own time
	// The vehicle that the readings are of; zero: the present vehicle of the unit.
	vehicle telematics.VehicleID
}

func newObservation(o delivery.Observation) observation {
	merged := observation{Observation: o}
	merged.At = pg.FromTimestamp(pg.Timestamp(o.At)) // cut like stored times
	if o.Report != nil {
		merged.readings = telematics.Merge(nil, *o.Report)
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
	if other.Report == nil {
		other.Report = o.Report
	}
	other.readings = telematics.Join(o.readings, other.readings)
	return other
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
	if len(observations) == 0 {
		return delivery.Seen{}, nil, nil
	}
	var refused []error
	left, err = pg.InParts(p.DB, observations, func(part []observation) error {
		some, err := p.observeTogether(ctx, part)
		addSeen(&seen, some)
		return err
	}, func(o observation, err error) {
		refused = append(refused, unavailable.Wrap("observe unit "+string(o.Unit), err))
	})
	for _, o := range observations {
		if slices.Contains(seen.Locked, o.Unit) {
			left = append(left, o)
		}
	}
	return seen, left, errors.Join(append(refused, unavailable.Wrap("observe vehicles", err))...)
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
	o := observation{vehicle: after.ID, readings: after.Snapshot}
	o.Unit, o.Protocol, o.At, o.Report = after.Unit, after.Protocol, contact.LastSeen, &telematics.Report{}
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
	snapshot  telematics.Snapshot
	reported  bool // the snapshot has new readings
}

// observeTogether is one transaction: compare-and-set under the locks of the units [LAW-7]. It
// waits for none: a unit that another transaction has locked is in the result.
func (p stored) observeTogether(ctx context.Context, observations []observation) (seen delivery.Seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	err = p.Prepared.Within(ctx, func(ctx context.Context, tx *pg.Tx) (err error) {
		seen, err = observeIn(ctx, tx, observations)
		return err
	})
	if err != nil {
		return delivery.Seen{}, err
	}
	return seen, nil
}

func observeIn(ctx context.Context, tx *pg.Tx, observations []observation) (delivery.Seen, error) {
	units, locked, err := lockUnits(ctx, tx, observations)
	if err != nil {
		return delivery.Seen{}, err
	}
	seen := delivery.Seen{Locked: locked}
	for _, o := range observations {
		unit, ok := units[o.Unit]
		if !ok && slices.Contains(locked, o.Unit) {
			continue
		}
		if !ok {
			seen.Unknown = appendNew(seen.Unknown, o.Unit)
			continue
		}
		if !o.Protocol.Means(unit.protocol) {
			seen.Foreign = appendNew(seen.Foreign, o.Unit)
			continue
		}
		if o.vehicle != 0 && o.vehicle != unit.change.Vehicle {
			continue // the unit has moved to another vehicle
		}
		seen.CountPresence(unit.contact, o.Observation)
		unit.observe(o)
		unit.spoke = unit.spoke || o.Presence != nil
		unit.change.Alarms = append(unit.change.Alarms, alarmsOf(o.Observation)...)
	}
	now := time.Now()
	for _, unit := range units {
		unit.announce(now)
	}
	if err := writeUnits(ctx, tx, units); err != nil {
		return delivery.Seen{}, err
	}
	for _, unit := range units {
		if !unit.change.Empty() {
			seen.Changes = append(seen.Changes, unit.change)
		}
	}
	return seen, nil
}

// announce notes the unit's connectivity, where a presence message has changed it: the instance
// that stores it publishes it. Changes by reports are left to vehicles.Fleet.Aged.
func (u *observedUnit) announce(now time.Time) {
	if is := u.contact.At(now); u.spoke && is != u.announced {
		u.announced, u.change.Presence = is, is
	}
}

func (u *observedUnit) observe(o observation) {
	u.contact = o.Contact(u.contact)
	switch {
	case len(o.readings) == 0:
	case u.snapshot == nil:
		u.snapshot, u.reported = o.readings, true // nothing modifies the readings any more
	default:
		u.snapshot, u.reported = telematics.Join(u.snapshot, o.readings), true
	}
	u.change.LastSeen = u.contact.LastSeen
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
				&r.Status, &r.Session, &r.Former, &r.SaidAt, &r.ChangedAt, &r.LastSeen, &r.Actions, &r.Keys, &r.Firmware, &r.GapMS); err != nil {
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
	if err != nil {
		return nil, nil, err
	}
	byVehicle := make(map[telematics.VehicleID]*observedUnit, len(units))
	for _, o := range observations { // presence alone changes none
		if unit, ok := units[o.Unit]; ok && len(o.readings) > 0 {
			byVehicle[unit.change.Vehicle] = unit
		}
	}
	snapshots, err := selectSnapshots(ctx, tx, slices.Collect(maps.Keys(byVehicle)))
	for id, snapshot := range snapshots { // which the locks of the units guard
		byVehicle[id].snapshot = snapshot
	}
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

// selectSnapshots returns the snapshots of vehicles; vehicles without one are absent.
func selectSnapshots(ctx context.Context, db pg.Querier, ids []telematics.VehicleID) (map[telematics.VehicleID]telematics.Snapshot, error) {
	var rows []struct {
		VehicleID telematics.VehicleID `db:"vehicle_id"`
		Fields    []byte               `db:"fields"`
	}
	err := db.Select(ctx, &rows, `select vehicle_id, fields from snapshots where vehicle_id = any ($1)`, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	found := make(map[telematics.VehicleID]telematics.Snapshot, len(rows))
	for _, row := range rows {
		if found[row.VehicleID], err = vehicles.DecodeSnapshot(row.Fields); err != nil {
			return nil, err
		}
	}
	return found, nil
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
	VehicleID telematics.VehicleID
	Fields    json.RawMessage
}

func writeUnits(ctx context.Context, tx *pg.Tx, units map[telematics.Unit]*observedUnit) error {
	var contacts []unitRow
	signs := make([][]any, 0, len(units))
	snapshots := make([]snapshotRow, 0, len(units))
	for _, u := range units {
		if u.spoke {
			contacts = append(contacts, unitRow{
				Serial: string(u.serial), Status: pg.Nullable(u.contact.Status), Session: u.contact.Session, Former: append([]string{}, u.contact.Former...),
				SaidAt: pg.Timestamp(u.contact.SaidAt), ChangedAt: pg.Timestamp(u.contact.ChangedAt), LastSeen: pg.Timestamp(u.contact.LastSeen),
				Actions: u.contact.Actions, Keys: u.contact.Keys, Firmware: u.contact.Firmware,
				GapMS: pg.Nullable(u.contact.Gap.Milliseconds()), Announced: u.announced,
			})
		} else {
			signs = append(signs, []any{string(u.serial), pg.Timestamp(u.contact.LastSeen), pg.Nullable(u.contact.Gap.Milliseconds())})
		}
		if !u.reported {
			continue
		}
		fields, err := vehicles.EncodeSnapshot(u.snapshot)
		if err != nil {
			return err
		}
		snapshots = append(snapshots, snapshotRow{VehicleID: u.change.Vehicle, Fields: fields})
	}
	if err := writeContacts(ctx, tx, contacts); err != nil {
		return err
	}
	if err := writeSignsOfLife(ctx, tx, signs); err != nil {
		return err
	}
	_, err := writeSnapshots(ctx, tx, snapshots)
	return err
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

// writeSnapshots inserts or replaces snapshots, and returns their new versions.
func writeSnapshots(ctx context.Context, tx *pg.Tx, rows []snapshotRow) (map[telematics.VehicleID]int64, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	versions := make(map[telematics.VehicleID]int64, len(rows))
	slices.SortFunc(rows, func(a, b snapshotRow) int { return cmp.Compare(a.VehicleID, b.VehicleID) })
	ids, fields := make([]int64, len(rows)), make([]string, len(rows))
	for i, row := range rows {
		ids[i], fields[i] = int64(row.VehicleID), string(row.Fields)
	}
	err := tx.Each(ctx, `
		insert into snapshots (vehicle_id, fields, updated_at)
		select vehicle_id, fields, clock_timestamp() from unnest($1::bigint[], $2::jsonb[]) as n (vehicle_id, fields)
		on conflict (vehicle_id) do update set fields = excluded.fields, updated_at = excluded.updated_at
		returning vehicle_id, updated_at`,
		[]any{pq.Array(ids), pq.Array(fields)}, func(written *sql.Rows) error {
			var id telematics.VehicleID
			var at time.Time
			err := written.Scan(&id, &at)
			versions[id] = version(&at)
			return err
		})
	return versions, err
}
