package vehicles

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

func twinIDs(twins []telematics.Twin) []telematics.VehicleID {
	var ids []telematics.VehicleID
	for _, twin := range twins {
		ids = append(ids, twin.ID)
	}
	return ids
}

func TestTwin_IsReadAsImported(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	for _, want := range file.Vehicles {
		got, err := p.Twin(t.Context(), want.ID)
		want.Maintenance.Since = got.Maintenance.Since // then
		if err != nil || got.Version == 0 || !reflect.DeepEqual(got, telematics.Twin{Vehicle: want, Version: got.Version}) {
			t.Errorf("Twin\n got %+v, %v\nwant %+v", got, err, want)
		}
	}
	_, err = p.Twin(t.Context(), 4711)
	if want := telematics.NoSuchVehicle(4711); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("Twin = %v, want %v", err, want)
	}
	var notFound *telematics.Error
	if !errors.As(err, &notFound) || unavailable.Is(err) {
		t.Errorf("error %v, want one that is not of an unavailable server", err)
	}
	for _, c := range []struct {
		agency  telematics.AgencyID
		vehicle telematics.VehicleID
		want    int
	}{{0, 0, 12}, {1, 0, 11}, {2, 0, 1}, {3, 0, 0}, {0, 9, 1}, {2, 9, 1}, {1, 9, 0}, {0, 13, 0}, {0, -1, 0}} {
		if n, err := p.CountVehicles(t.Context(), c.agency, c.vehicle); err != nil || n != c.want {
			t.Errorf("CountVehicles of %+v: %d, %v", c, n, err)
		}
	}
}

func TestTwins_AreFilteredByTextAndIDs(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	file.Vehicles[0].Brand, file.Vehicles[1].Model, file.Vehicles[2].Plate = `100%`, `C_3`, `M\X 1`
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		query telematics.VehicleQuery
		want  []telematics.VehicleID
	}{
		"percent":      {telematics.VehicleQuery{Text: "%"}, []telematics.VehicleID{1}},
		"underscore":   {telematics.VehicleQuery{Text: "c_3"}, []telematics.VehicleID{2}},
		"backslash":    {telematics.VehicleQuery{Text: `m\x`}, []telematics.VehicleID{3}},
		"ids":          {telematics.VehicleQuery{Agency: 1, IDs: []telematics.VehicleID{9, 7, 2, 99}}, []telematics.VehicleID{7, 2}},
		"NUL byte":     {telematics.VehicleQuery{Text: "\x00"}, nil},
		"connectivity": {telematics.VehicleQuery{Connectivity: telematics.Online}, nil},
	} {
		twins, err := p.Twins(t.Context(), c.query)
		if err != nil || !slices.Equal(twinIDs(twins), c.want) {
			t.Errorf("%s: %v, %v; want %v", name, twinIDs(twins), err, c.want)
		}
	}
}

// The filter is SQL and the rule is Go: they must agree on every possible contact.
func TestTwins_ConnectivityFilterAgreesWithContactAt(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	ago := func(d time.Duration) time.Time { return morning.Add(-d) }
	instants := []time.Time{
		{},
		morning.Add(time.Minute), morning, ago(time.Minute),
		ago(telematics.OnlineFor - time.Microsecond),
		ago(telematics.OnlineFor), ago(telematics.OnlineFor + time.Microsecond), ago(time.Hour),
	}
	statuses := []telematics.PresenceStatus{"", telematics.Online, telematics.Standby, telematics.Offline}
	file := FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}}}
	// One vehicle for each combination, and one without a unit.
	for id := range telematics.VehicleID(len(statuses)*len(instants)*len(instants) + 1) {
		file.Vehicles = append(file.Vehicles, telematics.Vehicle{
			ID: id + 1, AgencyID: 1, Unit: telematics.Unit(fmt.Sprintf("unit-%d", id+1)), Status: telematics.Available,
			Powertrain: telematics.Electric,
		})
	}
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	next := 0
	take := func() (telematics.VehicleID, telematics.Unit) {
		v := file.Vehicles[next]
		next++
		return v.ID, v.Unit
	}
	want := map[telematics.PresenceStatus][]telematics.VehicleID{}
	for _, status := range statuses {
		for _, seen := range instants {
			for _, changed := range instants {
				id, unit := take()
				contact := telematics.Contact{Status: status, LastSeen: seen, ChangedAt: changed}
				_, err := p.Pool.ExecContext(t.Context(), `update units set status = $2, last_seen = $3, changed_at = $4 where serial = $1`,
					unit, pg.Nullable(string(status)), pg.Timestamp(seen), pg.Timestamp(changed))
				require.NoError(t, err)
				want[contact.At(morning)] = append(want[contact.At(morning)], id)
			}
		}
	}
	bare, _ := take()
	storetest.Exec(t, p.Pool, `delete from units where vehicle_id = $1`, bare)
	want[telematics.Absent] = append(want[telematics.Absent], bare)
	for _, status := range telematics.PresenceStatuses {
		twins, err := p.twinsAt(t.Context(), telematics.VehicleQuery{Connectivity: status}, morning)
		require.NoError(t, err)
		got := twinIDs(twins)
		slices.Sort(got)
		if len(got) == 0 || !slices.Equal(got, want[status]) {
			t.Errorf("%s: vehicles %v, want %v", status, got, want[status])
		}
	}
}

func TestTwin_UnknownFieldsAndValuesAreLeftOut(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	_, err := p.Pool.ExecContext(
		t.Context(), `insert into snapshots (vehicle_id, fields) values ($1, $2)`, id,
		`{"telemetry.speed_kmh": {"v": 5, "at": 1767348000000}, "telemetry.warp": {"v": 9, "at": 1}, "telemetry.gear": {"v": "X",`+
			` "at": 1}}`,
	)
	require.NoError(t, err)
	twin, err := p.Twin(t.Context(), id)
	want := telematics.Snapshot{telematics.SpeedKmh: {Value: 5.0, At: time.UnixMilli(1767348000000).UTC()}}
	if err != nil || !reflect.DeepEqual(twin.Snapshot, want.Clone()) {
		t.Errorf("snapshot %v, %v; want %v", twin.Snapshot, err, want)
	}
}
