package store

import (
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

// sighting is what was seen of a unit: one observation, or several joined into one.
type sighting struct {
	delivery.Observation                      // with a report where there are readings
	readings             telematics.Snapshot  // each of its own time
	vehicle              telematics.VehicleID // that they are of; zero: that of the unit, whichever it is
	owed                 bool                 // Postgres is going to be given it with what is known of the vehicle
}

func newSighting(o delivery.Observation) sighting {
	s := sighting{Observation: o}
	s.At = pg.FromTimestamp(pg.Timestamp(o.At)) // compared with instants that were written down
	if o.Report != nil {
		s.readings = telematics.Merge(nil, *o.Report)
	}
	return s
}

// Observe merges what was seen of units into their contacts and their vehicles'
// snapshots, whatever the order of arrival [LAW-7], and returns the units that belong to
// no vehicle. It is durable when Observe returns. An error that is not [Away] names what
// could not be kept; the rest was kept.
func (p *Postgres) Observe(ctx context.Context, observations []delivery.Observation) (delivery.Seen, error) {
	sightings := make([]sighting, len(observations))
	for i, o := range observations {
		sightings[i] = newSighting(o)
	}
	return p.keep(ctx, sightings)
}

func (p *Postgres) keep(ctx context.Context, sightings []sighting) (delivery.Seen, error) {
	if len(sightings) == 0 {
		return delivery.Seen{}, nil
	}
	seen, err := p.observe(ctx, sightings)
	if len(sightings) > 1 && pg.Splits(err) {
		return p.observeEach(ctx, sightings)
	}
	return seen, unavailable.Wrap("observe vehicles", err)
}

// observeEach keeps what can be kept, where one sighting spoilt the others.
func (p *Postgres) observeEach(ctx context.Context, sightings []sighting) (delivery.Seen, error) {
	var all delivery.Seen
	var refused []error
	for _, s := range sightings {
		seen, err := p.observe(ctx, []sighting{s})
		if err != nil && !pg.Splits(err) {
			return all, unavailable.Wrap("observe vehicles", err)
		}
		if err != nil {
			refused = append(refused, unavailable.Wrap("observe unit "+string(s.Unit), err))
		}
		addSeen(&all, seen)
	}
	return all, errors.Join(refused...)
}

// addSeen adds what was found with some observations to what was found with others.
func addSeen(all *delivery.Seen, seen delivery.Seen) {
	for _, unit := range seen.Unknown {
		all.Unknown = appendNew(all.Unknown, unit)
	}
	for _, unit := range seen.Foreign {
		all.Foreign = appendNew(all.Foreign, unit)
	}
	all.Changes = append(all.Changes, seen.Changes...)
	all.Ghosts, all.Overtaken = all.Ghosts+seen.Ghosts, all.Overtaken+seen.Overtaken
}

// observedUnit is a unit, with its vehicle, while observations are merged into it.
type observedUnit struct {
	serial   telematics.Unit
	protocol telematics.Protocol
	change   telematics.Change // of its vehicle
	told     telematics.PresenceStatus
	spoke    bool // of its connection
	contact  telematics.Contact
	snapshot telematics.Snapshot
	reported bool // the snapshot has news
}

// observe is one transaction: compare-and-set under the locks of the units, which are
// taken in the order of their vehicles [LAW-7].
func (p *Postgres) observe(ctx context.Context, sightings []sighting) (seen delivery.Seen, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	if err := p.Prepared.Within(ctx, func(ctx context.Context, tx *pg.Tx) (err error) {
		seen, err = observeIn(ctx, tx, sightings)
		return err
	}); err != nil {
		return delivery.Seen{}, err
	}
	return seen, nil
}

func observeIn(ctx context.Context, tx *pg.Tx, sightings []sighting) (delivery.Seen, error) {
	units, err := lockUnits(ctx, tx, sightings)
	if err != nil {
		return delivery.Seen{}, err
	}
	var seen delivery.Seen
	for _, s := range sightings {
		unit, ok := units[s.Unit]
		if !ok {
			seen.Unknown = appendNew(seen.Unknown, s.Unit)
			continue
		}
		if !s.Protocol.Means(unit.protocol) {
			seen.Foreign = appendNew(seen.Foreign, s.Unit)
			continue
		}
		if s.vehicle != 0 && s.vehicle != unit.change.Vehicle {
			continue // the unit was built into another vehicle since
		}
		seen.CountRefusal(unit.contact, s.Observation)
		unit.observe(s)
		unit.spoke = unit.spoke || s.Presence != nil
	}
	announce(units, time.Now())
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

func appendNew(units []telematics.Unit, unit telematics.Unit) []telematics.Unit {
	if slices.Contains(units, unit) {
		return units
	}
	return append(units, unit)
}

func (u *observedUnit) observe(s sighting) {
	u.contact = s.Observation.Contact(u.contact)
	switch {
	case len(s.readings) == 0:
	case u.snapshot == nil:
		u.snapshot, u.reported = s.readings, true // which nobody changes
	default:
		u.snapshot, u.reported = telematics.Join(u.snapshot, s.readings), true
	}
	u.change.LastSeen = u.contact.LastSeen
}

// lockUnits returns those of the observed units that are built into vehicles.
func lockUnits(ctx context.Context, tx *pg.Tx, sightings []sighting) (map[telematics.Unit]*observedUnit, error) {
	serials := make([]string, len(sightings))
	for i, s := range sightings {
		serials[i] = string(s.Unit)
	}
	units := make(map[telematics.Unit]*observedUnit, len(sightings))
	err := tx.Each(ctx, `
		select u.serial, u.vehicle_id, u.protocol, v.agency_id, v.powertrain, u.announced, `+vehicles.ContactColumns+`
		from units u join vehicles v on v.id = u.vehicle_id
		where u.serial = any ($1)
		order by u.vehicle_id
		for update of u`,
		[]any{pq.Array(serials)}, func(found *sql.Rows) error {
			var u observedUnit
			var r vehicles.ContactRow
			c := &u.change
			if err := found.Scan(&u.serial, &c.Vehicle, &u.protocol, &c.Agency, &c.Powertrain, &u.told,
				&r.Status, &r.Session, &r.Former, &r.SaidAt, &r.ChangedAt, &r.LastSeen, &r.Actions, &r.Firmware, &r.GapMS); err != nil {
				return err
			}
			u.contact = r.Contact()
			units[u.serial] = &u
			return nil
		})
	if err != nil {
		return nil, err
	}
	byVehicle := make(map[telematics.VehicleID]*observedUnit, len(units))
	for _, s := range sightings { // presence alone changes none
		if unit, ok := units[s.Unit]; ok && len(s.readings) > 0 {
			byVehicle[unit.change.Vehicle] = unit
		}
	}
	return units, readSnapshots(ctx, tx, byVehicle)
}

// readSnapshots reads what the locks of the units guard.
func readSnapshots(ctx context.Context, tx *pg.Tx, units map[telematics.VehicleID]*observedUnit) error {
	snapshots, err := selectSnapshots(ctx, tx, slices.Collect(maps.Keys(units)))
	for id, snapshot := range snapshots {
		units[id].snapshot = snapshot
	}
	return err
}

// snapshots returns those of vehicles; of which there is none are absent.
func (p *Postgres) snapshots(ctx context.Context, ids []telematics.VehicleID) (map[telematics.VehicleID]telematics.Snapshot, error) {
	found, err := selectSnapshots(ctx, p.Prepared, ids)
	return found, unavailable.Wrap("read snapshots", err)
}

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
	Firmware  string                     `json:"firmware"`
	GapMS     *int64                     `json:"gap_ms"`
	Announced telematics.PresenceStatus  `json:"announced"`
}

type snapshotRow struct {
	VehicleID telematics.VehicleID `json:"vehicle_id"`
	Fields    json.RawMessage      `json:"fields"`
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
				Actions: u.contact.Actions, Firmware: u.contact.Firmware,
				GapMS: pg.Nullable(u.contact.Gap.Milliseconds()), Announced: u.told,
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
	return writeSnapshots(ctx, tx, snapshots)
}

// signsOfLife are all that a report changes of a contact.
var signsOfLife = pg.RowSet{Name: "n", Columns: []string{"serial text", "last_seen timestamptz", "gap_ms bigint"}}

var updateSignsOfLife = `
	with ` + signsOfLife.Many() + `
	update units u set last_seen = n.last_seen, gap_ms = n.gap_ms
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
	serials := make([]string, len(rows)) // tell the planner, again, how few they are
	for i, row := range rows {
		serials[i] = row.Serial
	}
	_, err := tx.ExecContext(ctx, `
		update units u
		set status = n.status, session = n.session, former_sessions = n.former_sessions, said_at = n.said_at, changed_at = n.changed_at,
			last_seen = n.last_seen, actions = n.actions, firmware = n.firmware, gap_ms = n.gap_ms,
			announced = n.announced
		from json_to_recordset($1) as n (
			serial text, status text, session text, former_sessions text[], said_at timestamptz, changed_at timestamptz,
			last_seen timestamptz, actions text[], firmware text, gap_ms bigint, announced text)
		where u.serial = n.serial and u.serial = any ($2)`,
		pg.JSONRecords(rows), pq.Array(serials))
	return err
}

func writeSnapshots(ctx context.Context, tx *pg.Tx, rows []snapshotRow) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, `
		insert into snapshots (vehicle_id, fields)
		select * from json_to_recordset($1) as n (vehicle_id bigint, fields jsonb) order by vehicle_id
		on conflict (vehicle_id) do update set fields = excluded.fields, updated_at = now()`,
		pg.JSONRecords(rows))
	return err
}

// announce notes, for units whose rows are locked and who spoke of their connection, what it
// is now: whoever writes it down is the one who tells of it. What a report says of it is left
// to Aged: reports may be written down where nobody is told what that has changed.
func announce(units map[telematics.Unit]*observedUnit, now time.Time) {
	for _, unit := range units {
		if is := unit.contact.At(now); unit.spoke && is != unit.told {
			unit.told, unit.change.Presence = is, is
		}
	}
}

// ForgetContacts forgets what units said about their connections, for when the MQTT
// broker has lost the presence that it retained: it would never tell that a unit has
// left meanwhile. What units declared of themselves stays.
func (p *Postgres) ForgetContacts(ctx context.Context) error {
	_, err := p.Pool.ExecContext(ctx, `
		with locked as (
			select serial from units order by vehicle_id for update
		)
		update units set status = null, session = '', former_sessions = '{}', said_at = null, changed_at = null, last_seen = null
		from locked where units.serial = locked.serial`)
	return unavailable.Wrap("forget contacts", err)
}
