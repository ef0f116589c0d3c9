package rentals

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// A booking that its client has not started ends by itself, for nothing: also one of a vehicle that
// is booked again, or in maintenance, and one whose start has failed.
func TestLapse_CancelsWhatWasNotStartedUntilItsEnd(t *testing.T) {
	w := newRentalWorld(t)
	hours := time.Since(noon).Hours()
	missed, again := w.book(draft(1, 1, 2)), w.book(draft(1, hours+1, hours+2))
	begun := w.book(draft(2, hours-1, hours+1))
	withdrawn, taken := w.book(draft(3, 1, 2)), w.book(draft(4, 1, 2))
	w.exec(`update vehicles set status = 'maintenance' where id = 3`)
	w.amend(rental.BookingStart, taken.ID, noon, beginAt(noon))
	refunded := w.book(draft(2, 1, 2))
	w.opens(refunded.ID, rental.StartRental, noon)
	w.exec(`update charges set state = 'released', goal = 'release' where booking_id = $1`, int64(refunded.ID))

	// By a clock that has leapt nothing is over.
	w.exec(`update observed_clock set steady_since = now()`)
	if got, err := Lapse(t.Context(), w.here.DB, 10); err != nil || len(got) != 0 {
		t.Errorf("by a clock that has leapt: %v, %v; want none", got, err)
	}
	w.exec(`update observed_clock set steady_since = '-infinity'`)
	got, err := Lapse(t.Context(), w.here.DB, 1)
	if err != nil || len(got) != 1 {
		t.Fatalf("Lapse of one = %v, %v", got, err)
	}
	if got, err := Lapse(t.Context(), w.here.DB, 10); err != nil || len(got) != 1 {
		t.Fatalf("Lapse of the others = %v, %v; want one", got, err)
	}
	w.exec(`update transitions set state = 'failed', ended_at = now(), due_at = null`)
	if got, err := Lapse(t.Context(), w.here.DB, 10); err != nil || len(got) != 1 || got[0].ID != refunded.ID {
		t.Fatalf("once its start has failed: %v, %v; want booking %d", got, err, refunded.ID)
	}
	for id, want := range map[rental.BookingID]rental.BookingState{
		missed.ID: rental.Cancelled, again.ID: rental.Upcoming, begun.ID: rental.Upcoming,
		withdrawn.ID: rental.Cancelled, taken.ID: rental.Active, refunded.ID: rental.Cancelled,
	} {
		d, err := w.here.BookingDetails(t.Context(), id)
		if err != nil || d.State != want {
			t.Errorf("booking %d is %s, %v; want %s", id, d.State, err, want)
		}
		if p := d.Payment(); want == rental.Cancelled && (p.Status != rental.PaymentNotCharged || !p.Final) {
			t.Errorf("booking %d: payment %+v", id, p)
		}
	}
	for id, want := range map[telematics.VehicleID]telematics.VehicleStatus{
		1: telematics.Booked, 2: telematics.Booked, 3: telematics.Maintenance, 4: telematics.InUse,
	} {
		assert.Equal(t, w.status(id), want, "vehicle %d", id)
	}
	lines := w.lines(missed.ID)
	if last := lines[len(lines)-1]; last.Action != rental.BookingLapse || last.Actor != rental.System() || last.Vehicle != 1 ||
		last.Details["end_date"] != "2026-03-04T14:00:00Z" {
		t.Errorf("audit log entry %+v", last)
	}
}

// At its end the maintenance is over once, whatever instances look for it.
func TestEndMaintenance_ReturnsVehiclesToServiceOnce(t *testing.T) {
	w := newRentalWorld(t)
	hours := time.Since(noon).Hours()
	w.book(draft(2, hours+1, hours+2))
	w.exec(`update vehicles set status = 'maintenance', maintenance_reason = 'brakes',
		maintenance_until = now() + case id when 3 then interval '1 hour' when 4 then null else interval '-1 second' end`)
	for i, err := range w.together(8, func(_ int, p *fixture) error {
		_, err := EndMaintenance(t.Context(), p.DB, 10)
		return err
	}) {
		assert.NoError(t, err, "call %d", i)
	}
	for id, want := range map[telematics.VehicleID]telematics.VehicleStatus{
		1: telematics.Available, 2: telematics.Booked, 3: telematics.Maintenance, 4: telematics.Maintenance,
	} {
		assert.Equal(t, w.status(id), want, "vehicle %d", id)
	}
	if n := w.count(`select count(*) from activity where action = 'vehicle.change' and actor_role = 'system' and agency_id = 1
		and parameters->'changes'->>0 = format('vehicle %s: status maintenance → %s', vehicle_id,
			case vehicle_id when 1 then 'available' else 'booked' end)`); n != 2 {
		t.Errorf("%d audit log entries, want one of each vehicle", n)
	}
	if n := w.count(`select count(*) from vehicles where maintenance_reason <> ''`); n != 2 {
		t.Errorf("%d vehicles with a reason, want those in maintenance", n)
	}
}

func TestLapse_CancelsWhatWasNotStartedInTime(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into rental_rules (agency_id, rules) values (1, '{"max_open_bookings": 0}')`)
	now := time.Now().UTC().Truncate(time.Millisecond)
	reserve := func(vehicle telematics.VehicleID, at time.Time) rental.BookingDetails {
		t.Helper()
		d := ownDraft(vehicle, 0, 0)
		d.Start, d.End = at, now.Add(4*time.Hour)
		made, err := w.reserve(d, at)
		require.NoError(t, err)
		return made
	}
	due, kept := reserve(1, now.Add(-20*time.Minute)), reserve(2, now)
	started := reserve(3, now.Add(-20*time.Minute))
	w.amend(rental.BookingStart, started.ID, now, beginAt(now))
	starting := reserve(4, now.Add(-20*time.Minute))
	w.exec(`insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content)
		values (gen_random_uuid(), $1, 'start', 'open', 'pay', now(), '{}', '{}')`, int64(starting.ID))
	if want := due.Created.Add(15 * time.Minute); !due.ReservedUntil.Equal(want) {
		t.Errorf("reserved until %v, want %v", due.ReservedUntil, want)
	}
	// Several instances cancel it once.
	lapsed := make([]int, 8)
	for i, err := range w.together(len(lapsed), func(i int, p *fixture) error {
		got, err := Lapse(t.Context(), p.DB, 10)
		lapsed[i] = len(got)
		return err
	}) {
		assert.NoError(t, err, "call %d", i)
	}
	total := 0
	for _, n := range lapsed {
		total += n
	}
	if total != 1 {
		t.Errorf("calls cancelled %v bookings, want one", lapsed)
	}
	for id, want := range map[rental.BookingID]rental.BookingState{
		due.ID: rental.Cancelled, kept.ID: rental.Upcoming, started.ID: rental.Active, starting.ID: rental.Upcoming,
	} {
		if d, err := w.here.BookingDetails(t.Context(), id); err != nil || d.State != want {
			t.Errorf("booking %d is %s, %v; want %s", id, d.State, err, want)
		}
	}
	assert.Equal(t, w.status(1), telematics.Available, "the vehicle")
	lines := w.lines(due.ID)
	if last := lines[len(lines)-1]; last.Action != rental.BookingLapse || last.Actor != rental.System() || last.Vehicle != 1 ||
		last.Agency != 1 || last.Outcome != telematics.Executed {
		t.Errorf("audit log entry %+v", last)
	}
	// The start has ended, without the booking.
	w.exec(`update transitions set state = 'failed', ended_at = now(), due_at = null`)
	if got, err := Lapse(t.Context(), w.here.DB, 10); err != nil || len(got) != 1 || got[0].ID != starting.ID {
		t.Errorf("once its start has failed: %v, %v; want booking %d cancelled", got, err, starting.ID)
	}
}

// A client who comes late finds the vehicle, and one who does not come keeps it from others for no
// longer than the agency wants.
func TestLapse_CancelsWhatAClientDidNotComeFor(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into rental_rules (agency_id, rules) values (1, '{"no_show_minutes": 60}')`)
	now := time.Now().UTC().Truncate(time.Millisecond)
	book := func(vehicle telematics.VehicleID, start time.Time) rental.BookingDetails {
		t.Helper()
		d := ownDraft(vehicle, 0, 0)
		d.Start, d.End = start, start.Add(96*time.Hour)
		made, err := w.reserve(d, start.Add(-24*time.Hour))
		require.NoError(t, err)
		return made
	}
	missed, late, short := book(1, now.Add(-61*time.Minute)), book(2, now.Add(-59*time.Minute)), book(3, now.Add(-59*time.Minute))
	w.exec(`update bookings set end_at = now() - interval '1 second' where id = $1`, int64(short.ID))
	// This client cannot start: another one is late, and then has just returned the vehicle.
	waits := book(4, now.Add(-61*time.Minute))
	before := w.book(draft(4, 0, 1))
	w.amend(rental.BookingStart, before.ID, noon, beginAt(noon))
	lapse := func(what string, n int) {
		t.Helper()
		if got, err := Lapse(t.Context(), w.here.DB, 10); err != nil || len(got) != n {
			t.Errorf("%s: cancelled %v, %v; want %d", what, got, err, n)
		}
	}
	w.exec(`update observed_clock set steady_since = now()`)
	lapse("after a leap of the clock", 0)
	w.exec(`update observed_clock set steady_since = '-infinity'`)
	lapse("after some hours", 2)
	w.exec(`update bookings set state = 'completed', ended_at = now() - interval '59 minutes' where id = $1`, int64(before.ID))
	lapse("returned 59 minutes ago", 0)
	w.exec(`update bookings set ended_at = now() - interval '61 minutes' where id = $1`, int64(before.ID))
	w.exec(`insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content, ended_at)
		values (gen_random_uuid(), $1, 'end', 'done', 'book', now(), '{}', '{}', now() - interval '59 minutes')`, int64(before.ID))
	lapse("its end requested 61 minutes ago, and locked 59 minutes ago", 0)
	w.exec(`update transitions set ended_at = now() - interval '61 minutes' where booking_id = $1`, int64(before.ID))
	// The start of another one, whose booking is over, is being undone, and then has been.
	undone := w.book(draft(4, 1, 2))
	w.exec(`update bookings set start_at = now() - interval '3 hours', end_at = now() - interval '2 hours' where id = $1`, int64(undone.ID))
	w.exec(`insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content)
		values (gen_random_uuid(), $1, 'start', 'open', 'undo', now(), '{}', '{"steps": [{"step": "pay"}]}')`, int64(undone.ID))
	lapse("another start is being undone", 0)
	undo := func(ago string) {
		w.exec(`update transitions set step = 'refund', content = jsonb_build_object('steps', jsonb_build_array(
			jsonb_build_object('step', 'undo', 'at', now() - $2::interval))) where booking_id = $1`, int64(undone.ID), ago)
	}
	undo("59 minutes")
	lapse("another start was undone 59 minutes ago, and is being refunded", 0)
	w.exec(`update transitions set state = 'failed', ended_at = now() where booking_id = $1`, int64(undone.ID))
	w.exec(`update bookings set state = 'cancelled' where id = $1`, int64(undone.ID))
	lapse("another start was undone 59 minutes ago", 0)
	undo("61 minutes")
	w.exec(`update vehicles set status = 'maintenance' where id = 4`)
	lapse("in maintenance", 0)
	w.exec(`update vehicles set status = 'booked' where id = 4`)
	ends := book(1, now.Add(-61*time.Minute))
	w.exec(`update vehicles set status = 'maintenance', maintenance_until = now() where id = 1`)
	_, err := EndMaintenance(t.Context(), w.here.DB, 10)
	require.NoError(t, err)
	lapse("returned 61 minutes ago", 1) // not that of the vehicle that is back from maintenance
	w.exec(`update vehicles set maintenance_since = now() - interval '59 minutes' where id = 1`)
	lapse("in service for 59 minutes", 0)
	w.exec(`update vehicles set maintenance_since = now() - interval '61 minutes' where id = 1`)
	lapse("in service for 61 minutes", 1)
	withdrawn := book(3, now.Add(-61*time.Minute))
	for _, fields := range []string{`{"status": "inactive"}`, `{"status": "available"}`} {
		_, err := w.here.Edit(t.Context(), telematics.FleetEdit{
			Vehicle: 3, Fields: []byte(fields), Entry: telematics.Activity{Actor: operator, Action: telematics.VehicleChange, At: now},
		})
		require.NoError(t, err)
		lapse(fields, 0)
	}
	for id, want := range map[rental.BookingID]rental.BookingState{
		missed.ID: rental.Cancelled, late.ID: rental.Upcoming, short.ID: rental.Cancelled, waits.ID: rental.Cancelled,
		ends.ID: rental.Cancelled, withdrawn.ID: rental.Upcoming,
	} {
		if d, err := w.here.BookingDetails(t.Context(), id); err != nil || d.State != want {
			t.Errorf("booking %d is %s, %v; want %s", id, d.State, err, want)
		}
	}
}

// A client who drives a paused vehicle pays for that from the first report that its ignition is on,
// by the vehicle's time, but not more than until now.
func TestEndPauses_OfVehiclesThatAreDriven(t *testing.T) {
	w := newRentalWorld(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	since := now.Add(-time.Hour)
	reports := func(vehicle telematics.VehicleID, ignition string, at time.Time) {
		w.exec(`insert into snapshots (vehicle_id, fields)
			values ($1, jsonb_build_object('telemetry.ignition', jsonb_build_object('v', $2::text, 'at', $3::bigint)))
			on conflict (vehicle_id) do update set fields = excluded.fields`, int64(vehicle), ignition, at.UnixMilli())
	}
	rented := map[telematics.VehicleID]rental.BookingID{}
	for vehicle := telematics.VehicleID(1); vehicle <= 4; vehicle++ {
		d := draft(vehicle, 0, 0)
		d.Start, d.End = since.Add(-time.Hour), now.Add(time.Hour)
		made, _, err := w.here.OpenBooking(t.Context(), d, asks(operator, rental.BookingCreate, 0, d.Start))
		require.NoError(t, err)
		rented[vehicle] = made.ID
		w.amend(rental.BookingStart, made.ID, d.Start, beginAt(d.Start))
		if vehicle != 4 { // that one is not paused
			w.amend("", made.ID, since, func(d rental.BookingDetails) (rental.Change, error) { return d.Pause(since) })
		}
	}
	reports(1, "off", now)
	reports(2, "on", since) // before it was locked
	reports(4, "on", now)
	sweeps := func(want ...telematics.VehicleID) []rental.Booking {
		t.Helper()
		got, err := EndPauses(t.Context(), w.here.DB, 10)
		vehicles := []telematics.VehicleID{}
		for _, b := range got {
			vehicles = append(vehicles, b.VehicleID)
		}
		require.NoError(t, err)
		assert.EqualSlices(t, vehicles, want, "vehicles that are driven")
		return got
	}
	sweeps()
	w.opens(rented[1], rental.EndRental, now) // it ends the pause itself, or fails
	reports(1, "on", since.Add(20*time.Minute))
	reports(2, "on", since.Add(30*time.Minute))
	reports(3, "on", now.Add(5*time.Hour)) // its clock is ahead
	got := sweeps(2, 3)
	if is := got[0]; is.PausedFor != 30*time.Minute || !is.PausedSince.IsZero() || is.State != rental.Active {
		t.Errorf("vehicle 2: paused for %v, since %v", is.PausedFor, is.PausedSince)
	}
	if is := got[1]; is.PausedFor < time.Hour || is.PausedFor > time.Hour+time.Since(now) {
		t.Errorf("vehicle 3: paused for %v, want until now", is.PausedFor)
	}
	reports(2, "on", since.Add(40*time.Minute))
	sweeps()
	w.exec(`update transitions set state = 'failed', ended_at = now(), due_at = null`)
	sweeps(1)
	// Reports of a time without reception, which are older than the state.
	w.amend("", rented[4], since, func(d rental.BookingDetails) (rental.Change, error) { return d.Pause(since) })
	reports(4, "off", now)
	w.exec(`select keep_telemetry(2, 1)`)
	on := map[time.Duration]bool{4 * time.Minute: true, 10 * time.Minute: false, 20 * time.Minute: true, 25 * time.Minute: true}
	for at, on := range on {
		w.exec(`insert into telemetry (vehicle_id, agency_id, at, after, ignition) values (4, 1, $1, 3, $2)`, since.Add(at), on)
	}
	if is := sweeps(4)[0]; is.PausedFor != 20*time.Minute+3*time.Second || !is.PausedSince.IsZero() {
		t.Errorf("vehicle 4: paused for %v, since %v", is.PausedFor, is.PausedSince)
	}
	lines := w.lines(rented[2])
	if last := lines[len(lines)-1]; last.Action != rental.PauseEnd || last.Actor != rental.System() || last.Vehicle != 2 {
		t.Errorf("audit log entry %+v", last)
	}
}
