// Package vehicles stores the fleet in Postgres: vehicles, their units and contacts, stations and
// addresses; and the units that belong to no vehicle.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package vehicles

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"

	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Fleet reads and writes vehicles in Postgres, with their units, stations and addresses, and the
// units without a vehicle. It is safe for concurrent use.
type Fleet struct {
	db      *pg.DB
	twins   *groupcommit.Batcher[telematics.VehicleID, found]
	records *groupcommit.Batcher[telematics.VehicleID, found]
}

// New returns the vehicles of a database.
func New(db *pg.DB) *Fleet {
	f := &Fleet{db: db}
	f.twins = pg.NewBatcher(db, f.readTwins(selectVersionedTwins))
	f.records = pg.NewBatcher(db, f.readTwins(selectRecords))
	return f
}

// row is a vehicle with what is known of it now, as it is read.
type row struct {
	telematics.Twin
	snapshot []byte // JSON; null: none
}

// DescriptionColumns are those of DescriptionFields, of vehicles v.
const DescriptionColumns = `v.id, v.agency_id, v.status, v.powertrain, v.plate_number, v.brand, v.model, v.year, v.color, v.category,
	v.image, v.features`

// DescriptionFields are where DescriptionColumns go.
func DescriptionFields(v *telematics.Vehicle) []any {
	return []any{
		&v.ID, &v.AgencyID, &v.Status, &v.Powertrain, &v.Plate, &v.Brand, &v.Model, &v.Year, &v.Color, &v.Category, &v.Image,
		(*pq.StringArray)(&v.Features),
	}
}

// UnitFields are where the columns serial, protocol and installation of a vehicle's unit go.
func UnitFields(v *telematics.Vehicle) []any {
	return []any{pg.OrZero(&v.Unit), pg.OrZero(&v.Protocol), (*installation)(&v.Installation)}
}

// recordFields are where recordColumns go.
func recordFields(t *telematics.Twin) []any {
	return slices.Concat(DescriptionFields(&t.Vehicle), []any{
		Actions(&t.Actions), &t.Maintenance.Reason, pg.UTC(&t.Maintenance.Until), pg.UTC(&t.Maintenance.Since), &t.Maintenance.By,
	}, UnitFields(&t.Vehicle), []any{pg.UTC(&t.MovedAt), pg.UTC(&t.UnitMovedAt)}, ContactFields(&t.Contact))
}

// installation is the column of that name.
type installation telematics.Installation

// Scan implements sql.Scanner. An empty object, and no unit, are nil.
func (i *installation) Scan(column any) error {
	*i = nil
	text, ok := column.([]byte)
	if !ok || string(text) == "{}" {
		return nil
	}
	return json.Unmarshal(text, i)
}

// ContactFields are where ContactColumns go.
func ContactFields(c *telematics.Contact) []any {
	return []any{
		pg.OrZero(&c.Status), pg.OrZero(&c.Session), (*formerSessions)(&c.Former), pg.UTC(&c.SaidAt), pg.UTC(&c.ChangedAt),
		pg.UTC(&c.LastSeen), Actions(&c.Actions), (*pq.StringArray)(&c.Keys), pg.OrZero(&c.Firmware), pg.Count(&c.Gap, time.Millisecond),
	}
}

const ContactColumns = `u.status as contact_status, u.session, u.former_sessions, u.said_at, u.changed_at, u.last_seen,
	u.actions, u.keys, u.firmware, u.gap_ms`

// Vehicles with their units' contacts, and with their snapshots.
const (
	recordColumns = DescriptionColumns + `, v.capabilities,
		v.maintenance_reason, v.maintenance_until, v.maintenance_since, v.maintenance_by,
		u.serial, u.protocol, u.installation, ` + MovedColumns + `, ` + ContactColumns
	selectRecords = `
	select ` + recordColumns + `, null::jsonb as fields, ` + RecordVersion + ` as version, false as best_effort_unlock
	from vehicles v left join units u on u.vehicle_id = v.id`
	selectTwins = `
	select ` + recordColumns + `, s.fields, 0 as version, false as best_effort_unlock` + fromTwins
	selectVersionedTwins = `
	select ` + recordColumns + `, s.fields, ` + RecordVersion + ` as version,
		coalesce((select a.best_effort_unlock from agencies a where a.id = v.agency_id), false) as best_effort_unlock` + fromTwins
	fromTwins = `
	from vehicles v left join units u on u.vehicle_id = v.id left join snapshots s on s.vehicle_id = v.id`
)

// RecordVersion is the SQL of a vehicle's version: of all fields that twins.Twins caches
// (telematics.Twin.ForOrders) but the last sign of life. It is compared only with versions that the
// same program has read on connections with the same settings, and never stored.
const RecordVersion = `hashtextextended(row(v.agency_id, v.powertrain, v.capabilities,
		u.serial, u.protocol, u.installation, u.status, u.session, u.changed_at, u.actions, v.moved_at, u.moved_at)::text, 0)`

// MovedColumns are the SQL of MovedAt and UnitMovedAt of telematics.Twin. A time from the future,
// of a clock that had leapt, does not count: it would exclude all reports.
const MovedColumns = `
	case when greatest(v.moved_at, u.moved_at) <= now() + interval '1 minute' then greatest(v.moved_at, u.moved_at) end as moved_at,
	case when u.moved_at <= now() + interval '1 minute' then u.moved_at end as unit_moved_at`

// formerSessions is the column of that name; an empty list is nil.
type formerSessions []string

// Scan implements sql.Scanner.
func (f *formerSessions) Scan(column any) error {
	err := (*pq.StringArray)(f).Scan(column)
	if len(*f) == 0 {
		*f = nil
	}
	return err
}

// asRecorded returns a vehicle as it was read.
func asRecorded(v telematics.Vehicle) telematics.Vehicle {
	if v.Status != telematics.Maintenance { // then it is when the vehicle returned to service
		v.Maintenance.Since = time.Time{}
	}
	return v
}

// fields are where the columns of selectTwins, and of its variants, go.
func (r *row) fields() []any {
	return append(recordFields(&r.Twin), &r.snapshot, &r.Version, &r.BestEffortUnlock)
}

// twin returns the vehicle with its contact and its snapshot.
func (r *row) twin() (t telematics.Twin, err error) {
	t = r.Twin
	t.Vehicle = asRecorded(t.Vehicle)
	if t.Snapshot, err = DecodeSnapshot(r.snapshot); err != nil {
		return telematics.Twin{}, fmt.Errorf("vehicle %d: %w", r.ID, err)
	}
	return t, nil
}

// Actions reads a column of actions; null is nil: no actions were declared, which is not the empty
// list. It shares the texts of control actions, since thousands of vehicles are cached.
func Actions(list *[]telematics.Action) sql.Scanner { return (*actions)(list) }

type actions []telematics.Action

func (a *actions) Scan(column any) error {
	var names pq.StringArray
	err := names.Scan(column)
	if *a = nil; names != nil {
		*a = make(actions, len(names))
	}
	for i, name := range names {
		(*a)[i] = telematics.Action(name)
		if at := slices.Index(telematics.ControlActions, (*a)[i]); at >= 0 {
			(*a)[i] = telematics.ControlActions[at]
		}
	}
	return err
}

// readingRow is the JSON of a reading in a snapshot; its value is decoded when its field is known.
type readingRow struct {
	Value json.RawMessage `json:"v"`
	AtMS  int64           `json:"at"`
	Once  bool            `json:"once,omitempty"` // of null: there was a value before
	// The time is that of arrival.
	Undated bool `json:"undated,omitempty"`
}

// DecodeSnapshot leaves out fields that this version of the program does not have, and values that
// it would refuse: the next report brings them again.
func DecodeSnapshot(fields json.RawMessage) (telematics.Snapshot, error) {
	if fields == nil {
		return nil, nil
	}
	var rows map[string]readingRow
	if err := json.Unmarshal(fields, &rows); err != nil {
		return nil, fmt.Errorf("decode snapshot: %w", err)
	}
	snapshot := telematics.NewSnapshot()
	for name, row := range rows {
		field, known := telematics.FieldOf(name)
		if !known {
			continue
		}
		if v, err := field.Parse(row.Value); err == nil {
			snapshot[field] = telematics.Reading{Value: v, At: time.UnixMilli(row.AtMS).UTC(), Once: row.Once, Undated: row.Undated}
		}
	}
	return snapshot, nil
}

// Twin returns a vehicle with its contact and its snapshot in Postgres, or a *telematics.Error with
// VehicleNotFound.
func (f *Fleet) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, err := readTwin(ctx, f.twins, id)
	return pg.Deref(twin), err
}

// Record is Twin without the snapshot.
func (f *Fleet) Record(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	return readTwin(ctx, f.records, id)
}

// found is the result of reading one vehicle.
type found struct {
	twin *telematics.Twin // nil: there is none
	err  error            // of its decoding, which is not the fault of the others in the batch
}

func readTwin(
	ctx context.Context, twins *groupcommit.Batcher[telematics.VehicleID, found], id telematics.VehicleID,
) (*telematics.Twin, error) {
	read, err := twins.Do(ctx, id)
	if err = cmp.Or(err, read.err); err != nil {
		return nil, unavailable.Wrap("read vehicle", err)
	}
	if read.twin == nil {
		return nil, telematics.NoSuchVehicle(id)
	}
	return read.twin, nil
}

// readTwins returns a reader of vehicles.
func (f *Fleet) readTwins(query string) func(context.Context, []telematics.VehicleID) ([]found, error) {
	query += ` where v.id = any ($1)`
	return func(ctx context.Context, ids []telematics.VehicleID) ([]found, error) {
		rows, err := pg.Read(ctx, f.db.Prepared, (*row).fields, pg.Itself, query, pq.Array(ids))
		if err != nil {
			return nil, err
		}
		byID := make(map[telematics.VehicleID]found, len(rows))
		for i := range rows {
			twin, err := rows[i].twin()
			byID[rows[i].ID] = found{&twin, err}
		}
		return pg.Map(ids, func(id telematics.VehicleID) found { return byID[id] }), nil
	}
}

// Twins returns vehicles with their contacts and snapshots in Postgres, by descending id, which is
// also the cursor of the pages.
func (f *Fleet) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	return f.twinsAt(ctx, q, time.Now())
}

// CountVehicles implements httpapi.Fleet.
func (f *Fleet) CountVehicles(ctx context.Context, agency telematics.AgencyID, vehicle telematics.VehicleID) (int, error) {
	var n int
	err := f.db.Lists.GetContext(
		ctx, &n,
		`select count(*) from vehicles where ($1::bigint = 0 or agency_id = $1) and ($2::bigint = 0 or id = $2)`,
		agency, vehicle,
	)
	return n, unavailable.Wrap("count vehicles", err)
}

// Connectivity is the SQL of telematics.Contact.At, for the unit u at an instant.
func Connectivity(now, onlineFor string) string {
	return `
	case
		when coalesce(u.status, 'online') = 'online'
			or u.status = 'offline' and u.last_seen > coalesce(u.changed_at, '-infinity')
		then case when ` + now + `::timestamptz - u.last_seen <= ` + onlineFor +
		`::bigint * interval '1 second' then 'online' else 'unknown' end
		else u.status
	end`
}

func (f *Fleet) twinsAt(ctx context.Context, q telematics.VehicleQuery, now time.Time) ([]telematics.Twin, error) {
	if !pg.Searchable(q.Text, string(q.Status), string(q.Connectivity)) {
		return nil, nil
	}
	// The page is selected first, so that snapshots are read only for its vehicles.
	twins, err := pg.Read(ctx, f.db.Lists, (*row).fields, (*row).twin, `
		with page as materialized (
			select v.id
			from vehicles v left join units u on u.vehicle_id = v.id
			where ($1::bigint = 0 or v.agency_id = $1)
				and ($2::text = '' or v.status = $2)
				and ($3::text = '' or $3 = `+Connectivity(`$4`, `$5`)+`)
				and ($6::text = '' or `+foundIn(vehicleSearch, `$9`)+` or u.serial ilike $6)
				and ($7::bigint = 0 or v.id < $7)
				and ($10::bigint[] is null or v.id = any ($10))
			order by v.id desc
			limit nullif($8::bigint, 0)
		)`+selectTwins+`
		where v.id in (select id from page)
		order by v.id desc`,
		q.Agency, q.Status, q.Connectivity, now, int64(telematics.OnlineFor.Seconds()), containing(q.Text), q.Before,
		q.Limit, telematics.Plain(q.Text), pq.Array(q.IDs),
	)
	return twins, unavailable.Wrap("read vehicles", err)
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// containing returns the LIKE pattern of the texts that contain another; empty for an
// empty one.
func containing(text string) string {
	if text == "" {
		return ""
	}
	return "%" + likeEscaper.Replace(text) + "%"
}

// vehicleSearch is the SQL of what searches compare of a vehicle: plate, brand and model, a line
// each, as telematics.Plain returns them. The column is null in rows of before it was added.
const vehicleSearch = `coalesce(v.search, concat_ws(chr(10), plain_text(v.plate_number), plain_text(v.brand), plain_text(v.model)))`

// foundIn returns the SQL of whether a text has a part, a parameter that is plain. An empty part is
// in no text.
func foundIn(text, part string) string {
	return `strpos(` + text + `, nullif(` + part + `::text, '')) > 0`
}

// StationColumns are the fields of a telematics.Station.
const StationColumns = `id, agency_id as agencyid, name, address, latitude, longitude`
