package vehicles

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// unitRow is a unit with the columns that are decoded.
type unitRow struct {
	telematics.ListedUnit
	snapshot []byte
	clock    telematics.ClockReading // zero: none
	problems pq.StringArray
}

func (r *unitRow) fields() []any {
	u, v := &r.ListedUnit, &r.Vehicle
	return slices.Concat([]any{&v.ID, &v.AgencyID, &v.Plate, &v.Unit, &v.Protocol}, ContactFields(&u.Contact), []any{
		&r.snapshot, pg.Count(&r.clock.Ahead, time.Millisecond), pg.UTC(&r.clock.At), &u.Reconnects, (*tallies)(&u.Rejects),
		(*tallies)(&u.Commands), &r.problems,
	})
}

func (r *unitRow) unit() (u telematics.ListedUnit, err error) {
	u = r.ListedUnit
	if u.Snapshot, err = DecodeSnapshot(r.snapshot); err != nil {
		return telematics.ListedUnit{}, fmt.Errorf("unit %s: %w", u.Vehicle.Unit, err)
	}
	if !r.clock.At.IsZero() {
		u.Clock = &r.clock
	}
	for _, problem := range r.problems {
		u.Problems = append(u.Problems, telematics.UnitProblem(problem))
	}
	return u, nil
}

// tallies is a column of numbers of rejects, by reason.
type tallies []telematics.RejectTally

// Scan implements sql.Scanner.
func (t *tallies) Scan(column any) error {
	*t = nil
	text, ok := column.([]byte)
	if !ok {
		return nil
	}
	var rows []struct {
		Reason string    `json:"reason"`
		Count  int       `json:"count"`
		Last   time.Time `json:"last_at"`
	}
	err := json.Unmarshal(text, &rows)
	for _, row := range rows {
		*t = append(*t, telematics.RejectTally{Reason: row.Reason, Tally: telematics.Tally{Count: row.Count, Last: row.Last.UTC()}})
	}
	return err
}

// tally is the SQL of tallies, by falling count.
const tally = `json_agg(json_build_object('reason', reason, 'count', count, 'last_at', last_at) order by count desc, reason)`

// ReasonsOfTheVehicle are reasons for which a unit rejects a command though nothing is wrong with
// it.
var ReasonsOfTheVehicle = []string{telematics.StateConflict, telematics.TooLate}

// Parameters of a list of units, by their places.
const (
	agencyParameter = iota + 1
	connectivityParameter
	nowParameter
	onlineForParameter
	textParameter
	beforeParameter
	limitParameter
	ofTheVehicleParameter
	signingKeyParameter
	plainParameter
)

var (
	instant = fmt.Sprintf("$%d::timestamptz", nowParameter)
	lately  = instant + ` - ` + pg.Interval(telematics.UnitHealthFor)
	rsrp    = `s.fields->'` + telematics.RSRP.String() + `'`
	// rejections are commands that units rejected. A unit does not remember some: their outcome is
	// unknown.
	rejections = `c.state in ('rejected', 'unknown') and c.reason <> '' and c.id >= command_id_at(` + lately + `)`
)

// problems are the SQL of the serials of units that have one.
var problems = map[telematics.UnitProblem]string{
	telematics.NeverSeen: `
		select u.serial from units u join vehicles v on v.id = u.vehicle_id
		where u.last_seen is null and u.status is null and v.status <> 'inactive'`,
	telematics.Silent: `
		select u.serial from units u join vehicles v on v.id = u.vehicle_id
		where u.last_seen <= ` + instant + ` - ` + pg.Interval(telematics.SilentFor) + ` and v.status <> 'inactive'
			and ` + Connectivity(instant, fmt.Sprintf("$%d", onlineForParameter)) + ` in ('offline', 'unknown')`,
	telematics.MissingKey: fmt.Sprintf(`
		select u.serial from units u where $%[1]d::text <> '' and not $%[1]d = any (u.keys)`, signingKeyParameter),
	telematics.RejectsCommands: `
		select u.serial from commands c join units u on u.serial = c.unit join vehicles v on v.id = u.vehicle_id
		and v.agency_id = c.agency_id
		where ` + rejections + fmt.Sprintf(` and c.reason <> all ($%d::text[])`, ofTheVehicleParameter),
	telematics.WrongClock: fmt.Sprintf(`
		select unit as serial from unit_clocks where ahead_ms > %d
		or ahead_ms < -%d`, telematics.MaxClockAhead.Milliseconds(), telematics.MaxClockBehind.Milliseconds()),
	telematics.RejectedReports: `
		select unit as serial from unit_counts where kind <> '` + reconnects + `' and hour > ` + lately,
	telematics.Unstable: `
		select unit as serial from unit_counts where kind = '` + reconnects + `' and hour > ` + lately + `
		group by unit having sum(count) > ` + fmt.Sprint(telematics.MaxReconnects),
	telematics.NoSignal: `
		select u.serial from snapshots s join units u on u.vehicle_id = s.vehicle_id
		where jsonb_typeof(` + rsrp + `->'v') = 'number' and ` + rsrp + `->'v' < '` + fmt.Sprint(telematics.LeastRSRP) + `'`,
}

// unitsStatement returns the SQL of a list. It selects the page first, so that the rest is read
// only for its units.
func unitsStatement(wanted telematics.UnitProblem) string {
	var found, has []string
	for _, p := range telematics.UnitProblems {
		if wanted == p || wanted == telematics.AnyProblem {
			found = append(found, problems[p])
		}
		has = append(has, `case when exists (select from (`+problems[p]+`) found where found.serial = u.serial) then '`+string(p)+`' end`)
	}
	troubled := ""
	if wanted != "" {
		troubled = ` and u.serial in (` + strings.Join(found, ` union all `) + `)`
	}
	return fmt.Sprintf(`
	with page as materialized (
		select v.id, u.serial
		from units u join vehicles v on v.id = u.vehicle_id
		where ($%[1]d::bigint = 0 or v.agency_id = $%[1]d)
			and ($%[2]d::text = '' or $%[2]d = `+Connectivity(instant, fmt.Sprintf("$%d", onlineForParameter))+`)
			and ($%[3]d::text = '' or u.serial ilike $%[3]d or `+foundIn(`split_part(`+vehicleSearch+`, chr(10), 1)`, `$%[6]d`)+
		` or u.firmware ilike $%[3]d
				or exists (select from snapshots s where s.vehicle_id = v.id and s.fields->'`+telematics.Firmware.String()+
		`'->>'v' ilike $%[3]d))
			and ($%[4]d::bigint = 0 or v.id < $%[4]d)`+troubled+`
		order by v.id desc
		limit nullif($%[5]d::bigint, 0)
	), rejected as materialized (
		select unit, agency_id, `+tally+` as commands
		from (
			select c.unit, c.agency_id, c.reason, count(*) as count, max(c.completed_at) as last_at
			from commands c
			where `+rejections+` and c.unit in (select serial from page)
			group by c.unit, c.agency_id, c.reason
		) by_reason
		group by unit, agency_id
	)
	select v.id, v.agency_id, v.plate_number, u.serial, u.protocol, `+ContactColumns+`,
		jsonb_strip_nulls(jsonb_build_object(
			'`+telematics.RSRP.String()+`', `+rsrp+`, '`+telematics.Firmware.String()+`', s.fields->'`+telematics.Firmware.String()+
		`')) as fields,
		c.ahead_ms, c.at as clock_at, coalesce(counted.reconnects, 0) as reconnects, counted.rejects, rejected.commands,
		array_remove(array[`+strings.Join(has, ", ")+`], null) as problems
	from page
		join vehicles v on v.id = page.id
		join units u on u.serial = page.serial
		left join snapshots s on s.vehicle_id = page.id
		left join unit_clocks c on c.unit = page.serial
		left join rejected on rejected.unit = page.serial and rejected.agency_id = v.agency_id
		left join lateral (
			select max(count) filter (where reason = '`+reconnects+`') as reconnects, `+tally+` filter (where reason <> '`+reconnects+
		`') as rejects
			from (
				select kind as reason, sum(count)::bigint as count, max(last_at) as last_at
				from unit_counts where unit = page.serial and hour > `+lately+`
				group by kind
			) by_reason
		) counted on true
	order by v.id desc`, agencyParameter, connectivityParameter, textParameter, beforeParameter, limitParameter, plainParameter)
}

// ListUnits implements httpapi.Units. It reads the reported state from Postgres alone.
func (f *Fleet) ListUnits(ctx context.Context, q telematics.UnitQuery) ([]telematics.ListedUnit, error) {
	return f.unitsAt(ctx, q, time.Now())
}

func (f *Fleet) unitsAt(ctx context.Context, q telematics.UnitQuery, at time.Time) ([]telematics.ListedUnit, error) {
	if !pg.Searchable(q.Text, string(q.Connectivity), string(q.Problem)) {
		return nil, nil
	}
	units, err := pg.Read(
		ctx, f.db.Lists, (*unitRow).fields, (*unitRow).unit, unitsStatement(q.Problem),
		q.Agency, q.Connectivity, at, int64(telematics.OnlineFor.Seconds()), containing(q.Text), q.Before, q.Limit,
		pq.Array(ReasonsOfTheVehicle), q.SigningKey, telematics.Plain(q.Text),
	)
	return units, unavailable.Wrap("read units", err)
}
