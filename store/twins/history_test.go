package twins

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/internal/require"
	"motorpool/store/history"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/samples"
)

// recordedFleet is a fleet of two vehicles of agency 1, whose reports an instance adds to the
// telemetry history.
type recordedFleet struct {
	*testing.T
	db       *pg.DB
	recorder *history.Recorder
	metrics  *prometheus.Registry
	twins    *Twins
	unit     telematics.Unit // of vehicle 1
}

func newRecordedFleet(t *testing.T) *recordedFleet {
	t.Helper()
	db := storetest.Open(t, storetest.NewDatabase(t))
	f := &recordedFleet{T: t, db: db, metrics: prometheus.NewRegistry()}
	f.recorder = history.NewRecorder(history.Config{DB: db, Days: 7, Metrics: f.metrics})
	_, _, err := f.recorder.Keep(t.Context())
	require.NoError(t, err)
	_, f.unit = storetest.AddVehicle(t, db, 1)
	f.exec(`insert into agencies (id, code, name) values (2, 'TWO', 'Two')`)
	storetest.AddVehicle(t, db, 2)
	f.exec(`delete from units where vehicle_id = 2`)
	p := newRecord(db)
	f.twins = New(Config{DB: db, Redis: new(redis.DB), Vehicles: p.Fleet, History: f.recorder})
	return f
}

func (f *recordedFleet) exec(statement string) {
	f.Helper()
	storetest.Exec(f, f.db.Pool, statement)
}

// report makes the unit send, now, a position of a given time.
func (f *recordedFleet) report(at time.Time) {
	f.Helper()
	_, err := f.twins.Observe(
		f.Context(),
		[]delivery.Observation{{Unit: f.unit, Protocol: telematics.DefaultProtocol, At: at, Report: &telematics.Report{
			At: at, Values: map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5},
		}}},
	)
	require.NoError(f, err)
	f.recorder.Flush(f.Context())
}

// want checks how many samples of a vehicle an agency has (0: all agencies), and how many reports
// were dropped.
func (f *recordedFleet) want(vehicle telematics.VehicleID, agency telematics.AgencyID, want int, dropped float64) {
	f.Helper()
	q := samples.Query{
		Vehicle: vehicle, Agency: agency, From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(time.Hour),
		Buckets: 1500,
	}
	got, err := history.Reader{DB: f.db, Days: 7}.Telemetry(f.Context(), q)
	if err != nil || len(got) != want {
		f.Errorf("agency %d has %d samples of vehicle %d, %v; want %d", agency, len(got), vehicle, err, want)
	}
	if n := f.dropped(); n != dropped {
		f.Errorf("%v reports were dropped as older than a move, want %v", n, dropped)
	}
}

func (f *recordedFleet) dropped() (n float64) {
	f.Helper()
	families, err := f.metrics.Gather()
	require.NoError(f, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetValue() == "moved" {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// notices are the ways in which an instance notices that a unit or a vehicle was moved.
var notices = map[string]func(*recordedFleet) error{
	"the owner expires": func(f *recordedFleet) error { f.twins.owners.cached.Purge(); return nil },
	"moves are read":    func(f *recordedFleet) error { return f.twins.owners.updateMoved(f.Context()) },
	"a record is read": func(f *recordedFleet) error {
		f.twins.owners.cached.Purge()
		for _, id := range []telematics.VehicleID{1, 2} {
			if _, err := f.twins.Record(f.Context(), id); err != nil {
				return err
			}
		}
		return nil
	},
}

// A unit stores reports that it cannot send. Those of before its vehicle came to another agency
// belong to the former agency; those of before it came to the vehicle to the former vehicle, also
// where it was without a vehicle for a time.
func TestHistory_ReportOlderThanTheMoveIsDropped(t *testing.T) {
	for name, notice := range notices {
		t.Run(name, func(t *testing.T) {
			f, now := newRecordedFleet(t), time.Now()
			f.report(now.Add(-3 * time.Hour))
			f.exec(`update vehicles set agency_id = 2 where id = 1`)
			require.NoError(t, notice(f))
			f.report(now.Add(-2 * time.Hour))
			f.want(1, 2, 0, 1)
			f.report(time.Now())
			f.want(1, 2, 1, 1)
			f.want(1, 1, 1, 1)

			f.exec(`update units set vehicle_id = null where vehicle_id = 1`)
			between := time.Now()
			f.exec(`update units set vehicle_id = 2 where vehicle_id is null`)
			require.NoError(t, notice(f))
			f.report(now.Add(-2 * time.Hour))
			f.report(between)
			f.want(2, 0, 0, 3)
			f.report(time.Now())
			f.want(2, 0, 1, 3)
			f.want(1, 0, 2, 3)
		})
	}
}

// An instance whose cached record is older than two moves must not take it for current: it would
// assign reports of the agency between them.
func TestRecord_VersionChangesWithTwoMoves(t *testing.T) {
	f := newRecordedFleet(t)
	before, err := f.twins.Record(t.Context(), 1)
	require.NoError(t, err)
	f.exec(`update vehicles set agency_id = 2 where id = 1`)
	f.exec(`update vehicles set agency_id = 1 where id = 1`)
	if after, err := f.twins.Record(t.Context(), 1); err != nil || after.Version == before.Version {
		t.Errorf("the version is still %d, error %v", after.Version, err)
	}
}

// An instance that could not look up a unit does not know when it was moved: the transaction that
// stores the report does.
func TestStore_ReportFromBeforeTheMoveOfItsUnitIsASignOfLife(t *testing.T) {
	f := newRecordedFleet(t)
	f.exec(`update units set vehicle_id = null where vehicle_id = 1`)
	f.exec(`update units set vehicle_id = 2 where vehicle_id is null`)
	now := time.Now().UTC()
	for at, want := range map[time.Time]int{now.Add(-time.Hour): 0, now: 1} {
		r := telematics.Report{
			At: at, Values: map[telematics.Field]any{telematics.MileageKm: 100.0}, Alarms: []telematics.Alarm{{Kind: "towing"}},
		}
		seen, err := Store(t.Context(), f.db, []delivery.Observation{{Unit: f.unit, At: now, Report: &r}})
		twin, read := newRecord(f.db).Twin(t.Context(), 2)
		if err != nil || read != nil || twin.Snapshot.Len() != want || len(seen.Changes) != want || twin.Contact.LastSeen.IsZero() {
			t.Errorf("a report of %s: %+v, %+v, %v, %v; want %d readings and changes", at, twin, seen, err, read, want)
		}
		f.exec(`delete from snapshots`)
	}
}
