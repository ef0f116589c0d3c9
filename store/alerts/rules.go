package alerts

import (
	"fmt"
	"strings"

	"motorpool/alerts"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/rentals"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// condition is the SQL of a rule: which vehicles or persons hold it now. It returns the columns of
// holding, at most one row of a vehicle or person, or of a booking. Of a row, holds is
//
//   - true: the condition is true;
//   - false: it is not, but not so clearly that an open alert would be cleared;
//   - null: it is not known, because the vehicle is offline. What is open stays, and what has not
//     opened yet does not open.
//
// Without a row, the condition is not true.
type condition struct {
	rule alerts.Rule
	// live: the facts of an open alert follow the vehicle.
	live bool
	// seldom: it is evaluated once in seldomEvery.
	seldom bool
	sql    string
}

// holding are the columns of a condition: what is null in most, and since, hold and facts.
const holding = `agency_id, vehicle_id, person, booking_id, command_id, severity, holds, since, hold, facts`

// Parameters of a condition, by their places.
const (
	instant   = `$1::timestamptz`
	outermost = `$9::float8`  // the limit from which on any agency has the mildest severity
	onlineFor = `$10::bigint` // seconds
	receiving = `$11::timestamptz`
	troubled  = `$13::timestamptz` // since when commands are read, but of vehicles with an alert
)

// settings are the settings s of a rule, of agencies that have not switched it off.
const settings = `
	settings as materialized (
		select * from unnest($2::bigint[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::text[], $8::text[])
			as s (agency_id, hold, info, warning, critical, severity, worst)
	)`

var (
	// stale is whether what is recorded of the vehicle of unit u may be outdated. A unit in standby
	// reports changes.
	stale = `coalesce(` + vehicles.Connectivity(instant, onlineFor) + ` in ('offline', 'unknown'), true)`
	// inUse is whether the vehicle v is driven by right: by a client, with a booking or one whose
	// start is open and not taken back, or by a booking of another program.
	inUse = `(v.status = 'in_use' or exists (
			select from bookings b where b.vehicle_id = v.id and (b.state = 'active'
				or b.state = 'upcoming' and exists (select from transitions t
					where t.booking_id = b.id and t.state = 'open' and t.step <> 'refund'))))`
	// forClients is whether clients can book the vehicle v: what is in maintenance is with staff.
	forClients = `v.status in ('available', 'booked')`
)

// graded returns the SQL of the severity of a value; null: it is beyond no limit.
func graded(value, beyond string) string {
	return fmt.Sprintf(`case when %[1]s %[2]s s.critical then 'critical' when %[1]s %[2]s s.warning then 'warning'
		when %[1]s %[2]s s.info then 'info' end`, value, beyond)
}

// ofInputs returns a condition about what vehicles report. which selects those for which holds is
// not certainly false, as cheaply as possible.
func ofInputs(which, severity, holds, facts string) string {
	return ofVehicles(which, severity, unlessStale(holds), `s.hold`, facts)
}

func unlessStale(holds string) string { return `case when not ` + stale + ` then ` + holds + ` end` }

// ofVehicles is ofInputs that says itself what holds of a vehicle that is offline, and for how many
// seconds the condition has to hold.
func ofVehicles(which, severity, holds, hold, facts string) string {
	return `
	select v.agency_id, v.id as vehicle_id, '' as person, null::bigint as booking_id, null::uuid as command_id,
		` + severity + ` as severity, ` + holds + ` as holds,
		null::timestamptz as since, ` + hold + ` as hold, jsonb_build_object(` + facts + `) as facts
	from alert_inputs i
		join vehicles v on v.id = i.vehicle_id
		join settings s on s.agency_id = v.agency_id
		join units u on u.vehicle_id = v.id
	where v.status <> 'inactive' and ` + which
}

// ofCommands returns a condition about the latest settled commands c of a vehicle that had a
// trouble within the last day. Between full sweeps it reads those of the last minutes, and of
// vehicles that have an alert of the rule: a day of a large fleet takes Postgres a second.
func ofCommands(latest, holds, facts string) string {
	return `
	select v.agency_id, v.id as vehicle_id, '' as person, null::bigint as booking_id, c.id as command_id,
		s.severity, true as holds, null::timestamptz as since, s.hold, jsonb_build_object(` + facts + `) as facts
	from (
			select vehicle_id from commands
			where state in (` + troubles + `) and id >= command_id_at(` + troubled + `)
			union
			select vehicle_id from alerts a
			where a.rule = $12 and a.cleared_at is null and exists (
				select from commands t where t.vehicle_id = a.vehicle_id and t.state in (` + troubles + `)
					and t.id >= command_id_at(` + instant + ` - ` + troubleFor + `)
			)
		) troubled
		join vehicles v on v.id = troubled.vehicle_id
		join settings s on s.agency_id = v.agency_id
		join units u on u.vehicle_id = v.id
		cross join lateral (` + latest + `) c
	where v.status <> 'inactive' and ` + holds
}

// latestCommand is the latest settled command of a troubled vehicle: it names that, and not the
// vehicle v, so that Postgres does not look for the commands of each vehicle first.
const latestCommand = `
	select * from commands c
	where c.vehicle_id = troubled.vehicle_id and c.unit = u.serial and c.state not in ('accepted', 'sent', 'received')
		and c.action <> 'report-state'
	order by c.seq desc limit 1`

const (
	// Most vehicles that report the distance light this lamp, too: service is due once.
	serviceLamp = `'service_due'`
	otherLamps  = `array_remove(i.lamps, ` + serviceLamp + `)`

	// What is stored as real, by its decimals: 12.2 is not below 12.2.
	volts     = `i.volts::numeric`
	energy    = `i.energy::numeric`
	serviceKm = `i.service_km::numeric`

	reason = `'action', c.action, 'reason', nullif(c.reason, '')`
	here   = `'position', jsonb_build_object('latitude', i.latitude, 'longitude', i.longitude, 'at', i.located_at)`
)

var (
	// metres is the distance of a vehicle from where it was parked; null: it is not known to be
	// parked.
	metres = `(` + pg.Metres(`i.latitude`, `i.longitude`, `i.parked_latitude`, `i.parked_longitude`) + `)`
	// moves is whether a vehicle reported with its position, or since, that it moves.
	moves = `exists (select from snapshots s where s.vehicle_id = v.id
		and ` + number(telematics.SpeedKmh) + ` > ` + fmt.Sprint(telematics.MovingKmh) + `
		and ` + reportedAt(telematics.SpeedKmh) + ` >= i.located_at)`
	// unconfirmedFor is for how many seconds a condition about a position has to hold that no
	// second report confirms: for twice the usual interval of reports.
	unconfirmedFor = fmt.Sprintf(`least(greatest(2 * coalesce(u.gap_ms, %d) / 1000.0, %g), %g)`,
		usualGap.Milliseconds(), confirmedWithin.Seconds(), telematics.OnlineFor.Seconds())
	troubleFor = pg.Interval(telematics.UnitHealthFor)
	troubles   = quoted(telematics.Rejected, telematics.Failed, telematics.Expired, telematics.Unknown)
	opening    = quoted(telematics.Unlock, telematics.UnlockAndEnableDriving)
	// What opens a vehicle, or shows where it is, in the audit log.
	opened = quoted(
		telematics.CommandActivity(telematics.Unlock), telematics.CommandActivity(telematics.UnlockAndEnableDriving),
		telematics.CommandActivity(telematics.EnableDriving), telematics.CommandActivity(telematics.OpenTopCase),
	)
	located = quoted(telematics.StatusRead, telematics.HistoryRead)
)

// has returns the SQL of whether the vehicle v has an alert a of a rule, opened or not, of which
// something is true.
func has(rule alerts.Rule, is string) string {
	return `exists (select from alerts a
		where a.rule = '` + string(rule) + `' and a.vehicle_id = v.id and a.cleared_at is null and (` + is + `))`
}

// confirmed returns the SQL of for how many seconds a condition about the position of a vehicle has
// to hold. A parked one that is elsewhere may be a single wrong position, until a later report, or
// its speed, confirms it.
func confirmed(rule alerts.Rule) string {
	return `case when coalesce(` + metres + ` <= ` + fmt.Sprint(driftMetres) + `, true) or ` + moves + `
			or ` + has(rule, `a.opened_at is not null or (a.facts->'position'->>'at')::timestamptz < i.located_at`) + `
		then s.hold else greatest(s.hold, ` + unconfirmedFor + `) end`
}

func quoted[T ~string](words ...T) string {
	return strings.Join(pg.Map(words, func(word T) string { return `'` + string(word) + `'` }), ", ")
}

// conditions are all rules.
var conditions = []condition{
	{rule: alerts.Battery12VLow, sql: ofInputs(
		volts+` < `+outermost+` + 0.2 and `+volts+` < greatest(s.info, s.warning, s.critical) + 0.2`,
		// Under load the voltage is lower: only the lowest limit counts then.
		`case when i.ignition is not true and i.charging is not true then `+graded(volts, `<`)+`
			when `+volts+` < least(s.info, s.warning, s.critical) then s.worst end`,
		volts+` < least(s.info, s.warning, s.critical)
			or i.ignition is not true and i.charging is not true and `+volts+` < greatest(s.info, s.warning, s.critical)`,
		`'volts', round(`+volts+`, 2)`)},
	{rule: alerts.EnergyLow, sql: ofInputs(
		energy+` < `+outermost+` + 2 and `+energy+` < least(greatest(s.info, s.warning, s.critical) + 2, 100)
			and v.status = 'available' and i.charging is not true and not `+inUse,
		graded(energy, `<`), energy+` < greatest(s.info, s.warning, s.critical)`, `'percent', round(`+energy+`)`)},
	{rule: alerts.Silent, sql: `
		select v.agency_id, v.id as vehicle_id, '' as person, null::bigint as booking_id, null::uuid as command_id, s.severity,
			` + receiving + ` is not null as holds, greatest(due.at, ` + receiving + `) as since, s.hold,
			jsonb_build_object('last_seen', u.last_seen) as facts
		from units u
			cross join lateral (select u.last_seen + 2 * coalesce(u.gap_ms, ` + fmt.Sprint(usualGap.Milliseconds()) +
		`) * interval '1 millisecond' as at) due
			join vehicles v on v.id = u.vehicle_id
			join settings s on s.agency_id = v.agency_id
		where u.last_seen < ` + instant + ` - ` + pg.Interval(storedWithin) + ` and u.status is distinct from 'standby'
			and due.at < ` + instant + ` and v.status <> 'inactive'`},
	{rule: alerts.Deaf, sql: ofCommands(`
			select count(*) as n, max(id::text)::uuid as id, min(requested_at) as first from (
				select * from commands c
				where c.vehicle_id = troubled.vehicle_id and c.unit = u.serial and c.state not in ('accepted', 'sent', 'received')
				order by c.seq desc limit `+fmt.Sprint(deafAfter)+`
			) latest
			where state in ('expired', 'unknown') and received_at is null and reason = '' and sent_at is not null`,
		`c.n = `+fmt.Sprint(deafAfter)+` and u.last_seen > c.first`, `'commands', c.n`)},
	{rule: alerts.UnitClock, sql: `
		select v.agency_id, v.id as vehicle_id, '' as person, null::bigint as booking_id, null::uuid as command_id,
			s.severity, true as holds, null::timestamptz as since, s.hold,
			jsonb_build_object('ahead_s', round(c.ahead_ms / 1000.0, 1)) as facts
		from unit_clocks c join units u on u.serial = c.unit
			join vehicles v on v.id = u.vehicle_id
			join settings s on s.agency_id = v.agency_id
		where (c.ahead_ms > ` + fmt.Sprint(telematics.MaxClockAhead.Milliseconds()) +
		` or c.ahead_ms < -` + fmt.Sprint(telematics.MaxClockBehind.Milliseconds()) + `)
			and c.at > ` + instant + ` - ` + troubleFor + ` and v.status <> 'inactive'`},
	// A vehicle that goes silent after it has moved is not back.
	{rule: alerts.MovedWithoutBooking, live: true, sql: ofVehicles(
		metres+` > `+outermost+` / 2 and `+metres+` > least(s.info, s.warning, s.critical) / 2 and `+forClients+` and not `+inUse,
		graded(metres, `>`),
		`case when not `+stale+` or `+has(alerts.MovedWithoutBooking, `true`)+` then `+metres+` > least(s.info, s.warning, s.critical) end`,
		confirmed(alerts.MovedWithoutBooking),
		`'metres', round(`+metres+`), `+here+`,
			'parked', jsonb_build_object('latitude', i.parked_latitude, 'longitude', i.parked_longitude)`) + `
		union all` + ofInputs( // it is driven away: open until it is parked again
		`i.parked_latitude is null and `+forClients+` and not `+inUse+` and `+has(alerts.MovedWithoutBooking, `true`),
		`null`, `false`, here)},
	{rule: alerts.IgnitionWithoutBooking, sql: ofInputs(
		`i.ignition and `+forClients+` and not `+inUse, `s.severity`, `true`, here)},
	{rule: alerts.LeftOpen, live: true, sql: ofInputs(
		`i.ignition is false and (i.locked is false or i.opened <> '{}') and `+forClients+` and not `+inUse,
		`s.severity`, `true`, `'open', to_jsonb(i.opened || case when i.locked is false then '{lock}'::text[] else '{}' end)`)},
	{rule: alerts.OutsideArea, sql: ofVehicles(
		`i.outside and `+forClients+` and not `+inUse, `s.severity`, unlessStale(`true`), confirmed(alerts.OutsideArea), here)},
	{rule: alerts.ParkedForbidden, sql: ofVehicles(
		`i.forbidden is not null and i.ignition is false and `+forClients+` and not `+inUse,
		`s.severity`, unlessStale(`true`), confirmed(alerts.ParkedForbidden), `'area', i.forbidden, `+here)},
	{rule: alerts.Overdue, sql: `
		select b.agency_id, b.vehicle_id, '' as person, b.id as booking_id, null::uuid as command_id, s.severity, true as holds,
			b.end_at as since, s.hold, jsonb_build_object('reference', b.reference, 'end', b.end_at) as facts
		from bookings b join settings s on s.agency_id = b.agency_id
		where b.state = 'active' and b.end_at <= ` + instant},
	{rule: alerts.StartedNotOpened, sql: `
		select b.agency_id, b.vehicle_id, '' as person, b.id as booking_id, null::uuid as command_id, s.severity,
			b.started_at > ` + instant + ` - ` + troubleFor + ` as holds, -- commands are found for a day
			b.started_at as since, s.hold, jsonb_build_object('reference', b.reference) as facts
		from bookings b join settings s on s.agency_id = b.agency_id left join alert_inputs i on i.vehicle_id = b.vehicle_id
		where b.state = 'active' and b.started_at <= ` + instant + `
			and i.locked is not false and i.ignition is not true and coalesce(i.parked_at <= b.started_at, true)
			and not exists (select from commands c where c.vehicle_id = b.vehicle_id and c.state = 'succeeded'
				and c.action in (` + opening + `) and c.completed_at >= b.started_at)`},
	{rule: alerts.ChargeFailed, live: true, sql: `
		select distinct on (b.id) b.agency_id, b.vehicle_id, '' as person, b.id as booking_id, null::uuid as command_id,
			s.severity, true as holds, null::timestamptz as since,
			case c.state when 'failed' then s.hold else greatest(s.hold, ` + fmt.Sprint(unknownFor.Seconds()) + `) end as hold,
			jsonb_build_object('reference', b.reference, 'charge', c.id, 'kind', c.kind, 'state', c.state,
				'amount', c.amount, 'currency', c.currency) as facts
		from charges c join bookings b on b.id = c.booking_id join settings s on s.agency_id = b.agency_id
		where (c.state = 'unknown' or coalesce(c.goal, 'hold') = 'hold' and (c.state in ('failed', 'requires_action')
					or c.state = 'declined' and c.next_attempt_at is null) -- its client has no card
				and not case c.kind
					when 'refund' then exists (select from charges f
						where f.booking_id = c.booking_id and f.refunds_charge_id = c.refunds_charge_id
							and f.created_at > c.created_at and f.state <> 'failed')
					else c.decline_code in (` + quoted(rental.CodesFor(rental.ByOperator)...) + `)
						and exists (` + rentals.Replacements + ` and f.paid_at is not null) end)
			and c.created_at > ` + instant + ` - interval '30 days'
		order by b.id, c.state <> 'failed', c.created_at desc, c.id`},
	// It opens when the alarm comes, and stays until it is acknowledged.
	{rule: alerts.UnitAlarm, sql: `
		select v.agency_id, v.id as vehicle_id, '' as person, null::bigint as booking_id, null::uuid as command_id, s.severity,
			false as holds, null::timestamptz as since, s.hold, '{}'::jsonb as facts
		from alerts a join vehicles v on v.id = a.vehicle_id join settings s on s.agency_id = v.agency_id
		where a.rule = 'unit_alarm' and a.cleared_at is null and v.status <> 'inactive'`},
	{rule: alerts.TroubleCode, live: true, sql: ofInputs(`i.codes <> '{}'`, `s.severity`, `true`, `'codes', to_jsonb(i.codes)`)},
	{rule: alerts.Lamp, live: true, sql: ofInputs(otherLamps+` <> '{}'`, `s.severity`, `true`, `'lamps', to_jsonb(`+otherLamps+`)`)},
	{rule: alerts.ServiceDue, sql: ofInputs(
		`(`+serviceKm+` < `+outermost+` and `+serviceKm+` < greatest(s.info, s.warning, s.critical) or `+serviceLamp+` = any (i.lamps))`,
		`coalesce(`+graded(serviceKm, `<`)+`, s.severity)`, `true`, `'km', round(`+serviceKm+`)`)},
	{rule: alerts.CommandUnknown, sql: ofCommands(
		latestCommand, `c.state = 'unknown' and c.reason = '' and coalesce(c.assurance, 0) & 128 = 0`, reason)},
	{rule: alerts.CommandContradicted, sql: ofCommands(
		latestCommand, `c.state = 'unknown' and coalesce(c.assurance, 0) & 128 <> 0`, reason)},
	{rule: alerts.UnitRejects, sql: ofCommands(
		latestCommand, `c.state in ('rejected', 'unknown') and c.reason not in ('', `+quoted(vehicles.ReasonsOfTheVehicle...)+`)`, reason)},
	// Of an agency if all of the vehicles are of it; by its limit then, and else by the default.
	{rule: alerts.MassAccess, live: true, seldom: true, sql: `
		select found.agency_id, null::bigint as vehicle_id, person, null::bigint as booking_id, null::uuid as command_id,
			` + graded(`vehicles`, `>`) + ` as severity, true as holds, null::timestamptz as since, s.hold,
			jsonb_build_object('vehicles', vehicles, 'opened', opened, 'located', located) as facts
		from (
			select actor_subject as person, count(distinct vehicle_id) as vehicles,
				count(distinct vehicle_id) filter (where action in (` + opened + `)) as opened,
				count(distinct vehicle_id) filter (where action in (` + located + `)) as located,
				case when min(agency_id) = max(agency_id) then min(agency_id) end as agency_id
			from activity
			where at > ` + instant + ` - ` + pg.Interval(accessWithin) + ` and vehicle_id is not null and actor_role <> 'system'
				and action in (` + opened + `, ` + located + `)
			group by actor_subject
			having count(distinct vehicle_id) > ` + outermost + `
		) found join settings s on s.agency_id = coalesce(found.agency_id, 0)
		where vehicles > least(s.info, s.warning, s.critical) and person <> ''`},
}
