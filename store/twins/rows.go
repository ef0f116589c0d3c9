package twins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// lockUnits locks the observed units that are built into vehicles, and returns them, and those
// that another transaction has locked.
func lockUnits(
	ctx context.Context, tx *sqlx.Tx, observations []observation,
) (_ map[telematics.Unit]*observedUnit, locked []telematics.Unit, _ error) {
	serials := make([]string, len(observations))
	for i, o := range observations {
		serials[i] = string(o.Unit)
	}
	units := make(map[telematics.Unit]*observedUnit, len(observations))
	fields := func(u *observedUnit) []any {
		c := &u.change
		return append([]any{
			&u.serial, &c.Vehicle, &u.protocol, &c.Agency, &c.Powertrain, &u.announced, pg.UTC(&u.movedAt), pg.UTC(&u.unitMovedAt),
		}, vehicles.ContactFields(&u.contact)...)
	}
	_, err := pg.Read(ctx, tx, fields, func(u *observedUnit) (*observedUnit, error) {
		units[u.serial] = u
		return u, nil
	}, `
		select u.serial, u.vehicle_id, u.protocol, v.agency_id, v.powertrain, u.announced,
			`+vehicles.MovedColumns+`, `+vehicles.ContactColumns+`
		from units u join vehicles v on v.id = u.vehicle_id
		where u.serial = any ($1)
		order by u.vehicle_id
		for update of u skip locked`, pq.Array(serials))
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
func selectLocked(ctx context.Context, tx *sqlx.Tx, missing []string) (locked []telematics.Unit, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	err = tx.SelectContext(ctx, &locked, `select serial from units where serial = any ($1) and vehicle_id is not null`, pq.Array(missing))
	return locked, err
}

// readSnapshots reads the versions of the snapshots of observed vehicles, which the locks of the
// units guard, and the snapshots that an observation does not include.
func readSnapshots(ctx context.Context, tx *sqlx.Tx, units map[telematics.Unit]*observedUnit, observations []observation) error {
	bases := make(map[*observedUnit]base, len(observations)) // presence alone changes no snapshot
	for _, o := range observations {
		if unit := units[o.Unit]; !o.readings.Empty() {
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
	var id telematics.VehicleID
	var at time.Time
	var fields []byte
	return pg.Each(ctx, tx, []any{&id, &at, &fields}, func() (err error) {
		unit := byVehicle[id]
		unit.version = version(at)
		unit.snapshot, err = vehicles.DecodeSnapshot(fields)
		return err
	}, `
		select vehicle_id, s.updated_at, case when s.updated_at <> n.updated_at then s.fields end
		from unnest($1::bigint[], $2::timestamptz[]) as n (vehicle_id, updated_at) join snapshots s using (vehicle_id)`,
		pq.Array(ids), pq.Array(versions))
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

func writeUnits(ctx context.Context, tx *sqlx.Tx, units map[telematics.Unit]*observedUnit) error {
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

func writeSignsOfLife(ctx context.Context, tx *sqlx.Tx, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, updateSignsOfLife, pg.Arrays(rows)...)
	return err
}

func writeContacts(ctx context.Context, tx *sqlx.Tx, rows []unitRow) error {
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
		pg.JSON(rows), pq.Array(serials))
	return err
}

// writeSnapshots inserts or replaces snapshots, and notes their new versions. They are the lines of
// one text, since JSON escapes line breaks: in an array each quote would be escaped, which costs
// both sides twice the time.
func writeSnapshots(ctx context.Context, tx *sqlx.Tx, rows []snapshotRow) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b snapshotRow) int { return cmp.Compare(a.of.change.Vehicle, b.of.change.Vehicle) })
	ids, fields := make([]int64, len(rows)), make([][]byte, len(rows))
	byVehicle := make(map[telematics.VehicleID]*observedUnit, len(rows))
	for i, row := range rows {
		ids[i], fields[i] = int64(row.of.change.Vehicle), row.fields
		byVehicle[row.of.change.Vehicle] = row.of
	}
	var id telematics.VehicleID
	var at time.Time
	return pg.Each(ctx, tx, []any{&id, &at}, func() error {
		byVehicle[id].version = version(at)
		return nil
	}, `
		insert into snapshots (vehicle_id, fields, updated_at)
		select vehicle_id, fields::jsonb, clock_timestamp()
		from unnest($1::bigint[], string_to_array($2, e'\n')) as n (vehicle_id, fields)
		on conflict (vehicle_id) do update set fields = excluded.fields, updated_at = excluded.updated_at
		returning vehicle_id, updated_at`,
		pq.Array(ids), string(bytes.Join(fields, []byte{'\n'})))
}
