package rentals

// takenTimes selects when a vehicle is taken by its bookings, from start_at to end_at. A rental
// that is overdue, and a booking whose vehicle is being opened, have it for a booking that begins
// now: until soon, which is now and rental.MaxLate. A start that is taken back opens nothing any
// more, however long its refund takes. All arguments are SQL.
func takenTimes(vehicle, soon string) string {
	return `
		select least(b.start_at, b.started_at, s.requested_at) as start_at,
			case when b.state = 'active' or s.id is not null then greatest(b.end_at, ` + soon + `) else b.end_at end as end_at
		from bookings b
			left join transitions s on s.booking_id = b.id and s.state = 'open' and s.kind = 'start' and s.step <> 'refund'
		where b.vehicle_id = ` + vehicle + ` and b.state in ('upcoming', 'active')`
}

// isTaken is the SQL of whether a vehicle is taken in a time.
func isTaken(vehicle, from, to, soon string) string {
	return `exists (select from (` + takenTimes(vehicle, soon) + `) t where t.start_at < ` + to + ` and t.end_at > ` + from + `)`
}

// undoneAt is the SQL of when the vehicle of a start t was locked again, which is refunded after
// that; null: it was not undone.
const undoneAt = `(select max((p->>'at')::timestamptz) from jsonb_array_elements(t.content->'steps') p where p->>'step' = 'undo')`

// backAt is the SQL of when the vehicle of an ended booking o was back: the booking has ended when
// that was requested, and the vehicle may have been locked long after.
const backAt = `greatest(o.ended_at, (
		select max(t.ended_at) from transitions t where t.booking_id = o.id and t.kind = 'end' and t.state = 'done'))`
