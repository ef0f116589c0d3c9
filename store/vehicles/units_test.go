package vehicles

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/ingest"
	"motorpool/httpapi"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var (
	_ httpapi.Units = (*Fleet)(nil)
	_ ingest.Health = (*Fleet)(nil)
)

func listed(t *testing.T, p *fixture, q telematics.UnitQuery) []telematics.ListedUnit {
	t.Helper()
	units, err := p.ListUnits(t.Context(), q)
	require.NoError(t, err)
	return units
}

func ids(units []telematics.ListedUnit) []telematics.VehicleID {
	list := []telematics.VehicleID{}
	for _, u := range units {
		list = append(list, u.Vehicle.ID)
	}
	return list
}

func storeHealth(t *testing.T, p *fixture, units ...telematics.UnitHealth) {
	t.Helper()
	require.NoError(t, p.StoreHealth(t.Context(), units))
}

// newUnits adds the vehicles 1 to n, each with an online unit without problems.
func newUnits(t *testing.T, n int) *fixture {
	p := open(t, storetest.NewDatabase(t))
	for id := range n {
		storetest.AddVehicle(t, p.DB, telematics.VehicleID(id+1))
	}
	storetest.Exec(
		t, p.Pool,
		`update units set status = 'online', session = 's', said_at = now(), changed_at = now(), last_seen = now(),
			firmware = '3.1.' || vehicle_id, keys = '{k1}'`,
	)
	return p
}

// reject adds a command that a unit rejected, or with another final state.
func reject(t *testing.T, p *fixture, vehicle int, state, reason string, ago time.Duration) {
	t.Helper()
	at := time.Now().Add(-ago)
	id := uuid.Must(uuid.NewV7())
	milliseconds := at.UnixMilli()
	for i := range 6 {
		id[i] = byte(milliseconds >> (8 * (5 - i)))
	}
	storetest.Exec(t, p.Pool, `
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, seq, instance, actor_subject, actor_role, request_id, state,
		reason, detail,
			attempts, requested_at, sent_at, completed_at, deadline)
		select $1, id, agency_id, 'unit-' || id, 'lock', 'access', nextval('commands_seq'), 'i', 'a', 'admin', $1, $3, $4, '', 1, $5, $5,
		$5, $5
		from vehicles where id = $2`, id, vehicle, state, reason, at)
}

func TestListUnits_ReturnsTheHealthOfUnits(t *testing.T) {
	p := newUnits(t, 2)
	now := time.Now().UTC().Truncate(time.Microsecond)
	storetest.Exec(t, p.Pool, `insert into snapshots (vehicle_id, fields) values (1, $1)`, fmt.Sprintf(
		`{"connectivity.rsrp_dbm":{"v":-109,"at":%d},"connectivity.firmware_version":{"v":null,"at":1},"telemetry.is_locked":{"v":true,`+
			`"at":1}}`,
		now.UnixMilli(),
	))
	storeHealth(
		t, p,
		telematics.UnitHealth{
			Unit: "unit-1", Clock: &telematics.ClockReading{Ahead: -1500 * time.Millisecond, At: now},
			Reconnects: telematics.Tally{Count: 2, Last: now},
			Rejects: map[telematics.Reject]telematics.Tally{
				telematics.Malformed: {Count: 3, Last: now}, telematics.BadTime: {Count: 3, Last: now},
			},
		},
		telematics.UnitHealth{Unit: "unit-9", Rejects: map[telematics.Reject]telematics.Tally{telematics.Malformed: {Count: 1, Last: now}}},
	)
	storeHealth(t, p, telematics.UnitHealth{Unit: "unit-1", Clock: &telematics.ClockReading{Ahead: time.Hour, At: now.Add(-time.Minute)},
		Rejects: map[telematics.Reject]telematics.Tally{telematics.Malformed: {Count: 1, Last: now.Add(-time.Second)}}})
	reject(t, p, 1, "rejected", telematics.StateConflict, time.Minute)
	reject(t, p, 1, "rejected", telematics.StateConflict, time.Hour)
	reject(t, p, 1, "rejected", telematics.StateConflict, 25*time.Hour)
	reject(t, p, 1, "unknown", "", time.Hour)
	reject(t, p, 1, "expired", telematics.ByHalt, time.Hour)

	units := listed(t, p, telematics.UnitQuery{})
	if !slices.Equal(ids(units), []telematics.VehicleID{2, 1}) {
		t.Fatalf("listed %v, want 2 and 1", ids(units))
	}
	u := units[1]
	if v := u.Vehicle; v.AgencyID != 1 || v.Plate != "M-IM 1" || v.Unit != "unit-1" || v.Protocol != "v1" {
		t.Errorf("vehicle %+v is not as expected", v)
	}
	if c := u.Contact; c.Status != telematics.Online || c.Firmware != "3.1.1" || !slices.Equal(c.Keys, []string{"k1"}) {
		t.Errorf("contact %+v, want online with its firmware and key", c)
	}
	if rsrp := u.Snapshot.Number(telematics.RSRP); rsrp == nil || *rsrp != -109 || u.Snapshot.Len() != 1 {
		t.Errorf("snapshot %+v, want only the signal strength", u.Snapshot)
	}
	if u.Clock == nil || u.Clock.Ahead != -1500*time.Millisecond || !u.Clock.At.Equal(now) {
		t.Errorf("clock %+v, want 1.5 s behind", u.Clock)
	}
	want := []telematics.RejectTally{
		{Reason: "malformed", Tally: telematics.Tally{Count: 4, Last: now}},
		{Reason: "wrong_time", Tally: telematics.Tally{Count: 3, Last: now}},
	}
	if u.Reconnects != 2 || !reflect.DeepEqual(u.Rejects, want) {
		t.Errorf("%d reconnects, rejects %+v, want %+v", u.Reconnects, u.Rejects, want)
	}
	if len(u.Commands) != 1 || u.Commands[0].Reason != telematics.StateConflict || u.Commands[0].Count != 2 ||
		time.Since(u.Commands[0].Last) > 2*time.Minute {
		t.Errorf("rejected commands %+v, want two with the state conflict", u.Commands)
	}
	assert.EqualSlices(t, u.Problems, []telematics.UnitProblem{telematics.RejectedReports}, "problems")
	if u := units[0]; u.Clock != nil || u.Rejects != nil || u.Commands != nil || u.Problems != nil || u.Snapshot.Len() != 0 {
		t.Errorf("the other unit: %+v, want no health", u)
	}
	var strays int
	if err := p.Pool.Get(&strays, `select count(*) from unit_counts where unit = 'unit-9'`); err != nil || strays != 0 {
		t.Errorf("%d rows for a unit without a vehicle, %v; want none", strays, err)
	}
}

func TestListUnits_FindsProblems(t *testing.T) {
	p := newUnits(t, 14)
	now := time.Now()
	tally := func(n int) telematics.Tally { return telematics.Tally{Count: n, Last: now} }
	clock := func(ahead time.Duration) *telematics.ClockReading {
		return &telematics.ClockReading{Ahead: ahead, At: now}
	}
	storetest.Exec(t, p.Pool, `update units set status = null, last_seen = null where vehicle_id in (2, 11)`)
	storetest.Exec(t, p.Pool, `update units set last_seen = now() - interval '61 min' where vehicle_id in (3, 12)`)
	storetest.Exec(t, p.Pool, `update units set status = 'offline', last_seen = now() - interval '50 min' where vehicle_id = 13`)
	storetest.Exec(t, p.Pool, `update units set status = 'standby', last_seen = now() - interval '2 days' where vehicle_id = 14`)
	storetest.Exec(t, p.Pool, `update vehicles set status = 'inactive' where id in (11, 12)`)
	storetest.Exec(t, p.Pool, `update units set keys = '{}' where vehicle_id = 4`)
	storetest.Exec(t, p.Pool, `update units set keys = null where vehicle_id = 5`)
	reject(t, p, 5, "unknown", telematics.BadSignature, time.Hour)
	reject(t, p, 5, "rejected", telematics.Moving, time.Hour)
	reject(t, p, 13, "rejected", telematics.StateConflict, time.Hour)
	storeHealth(t, p,
		telematics.UnitHealth{Unit: "unit-1", Clock: clock(telematics.MaxClockAhead), Reconnects: tally(telematics.MaxReconnects)},
		telematics.UnitHealth{Unit: "unit-10", Reconnects: tally(telematics.MaxReconnects + 1)},
		telematics.UnitHealth{Unit: "unit-13", Clock: clock(-telematics.MaxClockBehind)},
		telematics.UnitHealth{Unit: "unit-6", Clock: clock(telematics.MaxClockAhead + time.Millisecond)},
		telematics.UnitHealth{Unit: "unit-7", Clock: clock(-telematics.MaxClockBehind - time.Millisecond)},
		telematics.UnitHealth{Unit: "unit-8", Rejects: map[telematics.Reject]telematics.Tally{telematics.BadWord: tally(1)}})
	storetest.Exec(
		t, p.Pool, `insert into snapshots (vehicle_id, fields) values (8, $1), (9, $2), (13, $3)`,
		`{"connectivity.rsrp_dbm":{"v":-115.5,"at":1}}`, `{"connectivity.rsrp_dbm":{"v":-120,"at":1}}`,
		`{"connectivity.rsrp_dbm":{"v":null,"at":1}}`,
	)
	// Rejects older than the period do not count.
	storeHealth(t, p, telematics.UnitHealth{Unit: "unit-1", Rejects: map[telematics.Reject]telematics.Tally{
		telematics.Malformed: {Count: 5, Last: now.Add(-telematics.UnitHealthFor - time.Hour)}}})

	want := map[telematics.VehicleID][]telematics.UnitProblem{
		2: {
			telematics.NeverSeen,
		},
		3: {telematics.Silent}, 4: {telematics.MissingKey}, 5: {telematics.RejectsCommands},
		6: {telematics.WrongClock}, 7: {telematics.WrongClock}, 8: {telematics.RejectedReports, telematics.NoSignal},
		9: {telematics.NoSignal}, 10: {telematics.Unstable},
	}
	for _, u := range listed(t, p, telematics.UnitQuery{SigningKey: "k1"}) {
		assert.EqualSlices(t, u.Problems, want[u.Vehicle.ID], "unit %s: problems", u.Vehicle.Unit)
	}
	for problem, want := range map[telematics.UnitProblem][]telematics.VehicleID{
		telematics.AnyProblem: {10, 9, 8, 7, 6, 5, 4, 3, 2}, telematics.WrongClock: {7, 6}, telematics.NoSignal: {9, 8},
		telematics.MissingKey: {4},
	} {
		q := telematics.UnitQuery{Problem: problem, SigningKey: "k1"}
		assert.EqualSlices(t, ids(listed(t, p, q)), want, "%s", problem)
		q.Page = telematics.Page{Limit: 1, Before: int64(want[0])}
		assert.EqualSlices(t, ids(listed(t, p, q)), want[1:min(2, len(want))], "%s, second page", problem)
	}
	if got := ids(listed(t, p, telematics.UnitQuery{Problem: telematics.MissingKey})); len(got) > 0 {
		t.Errorf("units that miss a key, without a signing key: %v, want none", got)
	}
}

func TestListUnits_Filters(t *testing.T) {
	p := newUnits(t, 3)
	storetest.Exec(t, p.Pool, `insert into agencies (id, code, name) values (2, 'BER', 'Berlin')`)
	storetest.Exec(t, p.Pool, `update vehicles set agency_id = 2 where id = 3`)
	storetest.Exec(t, p.Pool, `update units set status = 'standby' where vehicle_id = 2`)
	storetest.Exec(t, p.Pool, `insert into units (serial) values ('in-store')`)
	storetest.Exec(
		t, p.Pool, `insert into snapshots (vehicle_id, fields) values (2, '{"connectivity.firmware_version":{"v":"ovms-4.2","at":1}}')`,
	)
	for _, c := range []struct {
		q    telematics.UnitQuery
		want []telematics.VehicleID
	}{
		{telematics.UnitQuery{}, []telematics.VehicleID{3, 2, 1}},
		{telematics.UnitQuery{Agency: 1}, []telematics.VehicleID{2, 1}},
		{telematics.UnitQuery{Agency: 3}, []telematics.VehicleID{}},
		{telematics.UnitQuery{Connectivity: telematics.Standby}, []telematics.VehicleID{2}},
		{telematics.UnitQuery{Text: "UNIT-3"}, []telematics.VehicleID{3}},
		{telematics.UnitQuery{Text: "im 1"}, []telematics.VehicleID{1}},
		{telematics.UnitQuery{Text: "3.1.2"}, []telematics.VehicleID{2}},
		{telematics.UnitQuery{Text: "OVMS-4"}, []telematics.VehicleID{2}},
		{telematics.UnitQuery{Text: "%"}, []telematics.VehicleID{}},
		{telematics.UnitQuery{Text: "\x00"}, []telematics.VehicleID{}},
		{telematics.UnitQuery{Page: telematics.Page{Limit: 1, Before: 3}}, []telematics.VehicleID{2}},
	} {
		assert.EqualSlices(t, ids(listed(t, p, c.q)), c.want, "%+v", c.q)
	}
	reject(t, p, 1, "rejected", telematics.ClockBehind, time.Hour)
	storetest.Exec(t, p.Pool, `update vehicles set agency_id = 2 where id = 1`)
	if u := listed(t, p, telematics.UnitQuery{Agency: 2, Page: telematics.Page{Before: 2}}); len(u) != 1 || u[0].Commands != nil {
		t.Errorf("commands of the former agency are listed: %+v", u)
	}
}

func TestStoreHealth_OfTheSameUnitsConcurrently(t *testing.T) {
	const instances, rounds, n = 4, 5, 20
	p := newUnits(t, n)
	var found []telematics.UnitHealth
	now := time.Now()
	for id := range n {
		found = append(
			found,
			telematics.UnitHealth{
				Unit:  telematics.Unit(fmt.Sprintf("unit-%d", id+1)),
				Clock: &telematics.ClockReading{Ahead: time.Second, At: now},
				Reconnects: telematics.Tally{
					Count: 1, Last: now,
				},
				Rejects: map[telematics.Reject]telematics.Tally{telematics.Malformed: {Count: 2, Last: now}},
			},
		)
	}
	var all sync.WaitGroup
	for range instances {
		all.Go(func() {
			for range rounds {
				assert.NoError(t, p.StoreHealth(t.Context(), found))
			}
		})
	}
	all.Wait()
	for _, u := range listed(t, p, telematics.UnitQuery{}) {
		if u.Reconnects != instances*rounds || len(u.Rejects) != 1 || u.Rejects[0].Count != 2*instances*rounds {
			t.Errorf("unit %s: %d reconnects, rejects %+v; want the sums of all instances", u.Vehicle.Unit, u.Reconnects, u.Rejects)
		}
	}
}

func TestForgetHealth_RemovesOldEntries(t *testing.T) {
	p := newUnits(t, 3)
	now := time.Now()
	for unit, ago := range map[telematics.Unit]time.Duration{"unit-1": 0, "unit-2": telematics.UnitHealthFor +
		time.Hour, "unit-3": clocksKeptFor + time.Hour} {
		storeHealth(
			t, p,
			telematics.UnitHealth{
				Unit: unit, Clock: &telematics.ClockReading{At: now.Add(-ago)},
				Reconnects: telematics.Tally{Count: 1, Last: now.Add(-ago)},
			},
		)
	}
	for _, wantMore := range []bool{true, true, false} {
		if more, err := ForgetHealth(t.Context(), p.DB, 1); err != nil || more != wantMore {
			t.Errorf("ForgetHealth = %v, %v; want %v", more, err, wantMore)
		}
	}
	for query, want := range map[string][]string{
		`select unit from unit_counts order by unit`: {"unit-1"}, `select unit from unit_clocks order by unit`: {"unit-1", "unit-2"},
	} {
		var left []string
		if err := p.Pool.Select(&left, query); err != nil || !slices.Equal(left, want) {
			t.Errorf("%s: %v, %v; want %v", query, left, err, want)
		}
	}
}
