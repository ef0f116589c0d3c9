package history

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// instance is one of several instances on a database.
type instance struct {
	*testing.T
	*Recorder
	Reader
}

func newInstance(t *testing.T, address string, days int) instance {
	db := storetest.Open(t, address)
	i := instance{t, NewRecorder(Config{DB: db, Days: days}), Reader{db, days}}
	i.keep()
	return i
}

func (i instance) keep() (added, dropped int) {
	i.Helper()
	added, dropped, err := i.Keep(i.Context())
	require.NoError(i, err)
	return added, dropped
}

type report = map[telematics.Field]any

func (i instance) report(vehicle telematics.VehicleID, at time.Time, v report) {
	i.Record(vehicle, 1, telematics.Electric, &telematics.Report{At: at, Values: v})
}

// read returns the history of vehicle 1 in buckets of one minute.
func (i instance) read(from time.Time, minutes int) []samples.Bucket {
	i.Helper()
	q := samples.Query{Vehicle: 1, From: from, To: from.Add(time.Duration(minutes) * time.Minute), Buckets: minutes}
	buckets, err := i.Telemetry(i.Context(), q)
	require.NoError(i, err)
	return buckets
}

func (i instance) rows() (n int) {
	i.Helper()
	require.NoError(i, i.DB.Pool.Get(&n, `select count(*) from telemetry`))
	return n
}

// recently returns the beginning of an interval a few hours ago.
func recently() time.Time { return time.Now().UTC().Add(-3 * time.Hour).Truncate(time.Hour) }

func TestTelemetry_BucketsHaveMinimumMeanAndMaximum(t *testing.T) {
	t.Parallel()
	i, begin := newInstance(t, storetest.NewDatabase(t), 7), recently()
	for n := range 8 { // two minutes of a trip
		i.report(1, begin.Add(time.Duration(n)*15*time.Second+3*time.Second), report{
			telematics.SpeedKmh: 10 + float64(n), telematics.Battery: 80 - float64(n)/10, telematics.OnboardV: 14.1, telematics.RSRP: -90.0,
			telematics.Latitude: 48.1 + float64(n)/1000, telematics.Longitude: -11.5, telematics.IsLocked: false, telematics.Ignition: "on",
		})
	}
	i.report(1, begin.Add(10*time.Minute), report{telematics.OnboardV: 12.6})
	i.report(2, begin, report{telematics.OnboardV: 11.0})
	i.Flush(t.Context())
	buckets := i.read(begin, 60)
	if len(buckets) != 3 {
		t.Fatalf("%d buckets, want 3: %+v", len(buckets), buckets)
	}
	first, second, last := buckets[0], buckets[1], buckets[2]
	if *first.Speed != (samples.Values{Min: 10, Avg: 11.5, Max: 13}) ||
		*second.Energy != (samples.Values{Min: 79.3, Avg: 79.45, Max: 79.6}) ||
		first.Voltage.Avg != 14.1 || first.Signal.Min != -90 || *first.Locked || !*first.Ignition {
		t.Errorf("buckets of the trip: %+v, speed %+v, energy %+v", first, *first.Speed, *second.Energy)
	}
	if !first.Begin.Equal(begin) || *first.Position != (telematics.Position{Latitude: 48.103, Longitude: -11.5}) ||
		!first.LocatedAt.Equal(begin.Add(48*time.Second)) {
		t.Errorf("position in %+v: %+v", first, first.Position)
	}
	if !last.Begin.Equal(begin.Add(10*time.Minute)) || last.Voltage.Min != 12.6 || last.Speed != nil || last.Position != nil ||
		last.Locked != nil {
		t.Errorf("bucket after a gap: %+v", last)
	}
	agency, err := i.Telemetry(t.Context(), samples.Query{Vehicle: 1, Agency: 2, From: begin, To: begin.Add(time.Hour), Buckets: 60})
	if err != nil || len(agency) != 0 {
		t.Errorf("for another agency: %v, %v; want no bucket", agency, err)
	}
}

// An interval in which a vehicle changes its agency belongs to the former one, and has no field
// from the time with the new one.
func TestTelemetry_IntervalOfTwoAgenciesBelongsToTheFirst(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	a, b, begin := newInstance(t, address, 7), newInstance(t, address, 7), recently()
	a.report(1, begin, report{telematics.Battery: 50.0})
	b.Record(
		1, 2, telematics.Electric,
		&telematics.Report{At: begin.Add(time.Minute), Values: report{telematics.Latitude: 48.1, telematics.Longitude: 11.5}},
	)
	a.Flush(t.Context())
	b.Flush(t.Context())
	if buckets := a.read(begin, 5); len(buckets) != 1 || buckets[0].Position != nil || a.rows() != 1 {
		t.Errorf("%d rows, want 1 without a position; %+v", a.rows(), buckets)
	}
}

// The broker delivers each report to one instance, and some reports to two. A unit may report each
// field separately.
func TestRecorder_InstancesStoreASampleOnce(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	a, b, begin := newInstance(t, address, 7), newInstance(t, address, 7), recently()
	const vehicles = 2 * batch
	var writing sync.WaitGroup
	for n, i := range []instance{a, b} {
		for vehicle := range telematics.VehicleID(vehicles) {
			i.report(vehicle+1, begin.Add(time.Duration(n)*time.Second), []report{
				{telematics.Latitude: 48.1, telematics.OnboardV: 12.1}, {telematics.Longitude: 11.5, telematics.OnboardV: 12.2},
			}[n])
		}
		writing.Go(func() { i.Flush(t.Context()) })
	}
	writing.Wait()
	for _, i := range []instance{a, b} { // writes that had to be retried
		i.Flush(t.Context())
	}
	buckets := a.read(begin, 5)
	if a.rows() != vehicles || len(buckets) != 1 || buckets[0].Position == nil || buckets[0].Voltage.Min != buckets[0].Voltage.Max {
		t.Errorf("%d rows, want one for each vehicle; %+v", a.rows(), buckets)
	}
}

func TestRecorder_LateReportIsStoredAtItsOwnTime(t *testing.T) {
	t.Parallel()
	i, begin := newInstance(t, storetest.NewDatabase(t), 7), recently()
	i.report(1, time.Now(), report{telematics.Battery: 50.0})
	late := begin.AddDate(0, 0, -6)
	i.report(1, late, report{telematics.Battery: 90.0})
	i.report(1, begin.AddDate(0, 0, -8), report{telematics.Battery: 95.0})
	i.Flush(t.Context())
	if buckets := i.read(late, 5); len(buckets) != 1 || buckets[0].Energy.Avg != 90 || i.rows() != 2 {
		t.Errorf("%d rows, want 2 and 90 in the late one; %+v", i.rows(), buckets)
	}
	assert.Equal(t, testutil.ToFloat64(i.metrics.dropped.WithLabelValues(string(samples.TooOld))), 1, "reports are too old")
}

func TestKeep_DropsOldDaysOrAllIfTurnedOff(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	month := newInstance(t, address, 30)
	if added, dropped := month.keep(); added+dropped != 0 {
		t.Errorf("a second time: %d days added, %d dropped, want none", added, dropped)
	}
	for _, days := range []int{20, 3} {
		month.report(1, time.Now().AddDate(0, 0, -days), report{telematics.Battery: 50.0})
	}
	month.Flush(t.Context())
	week := instance{t, NewRecorder(Config{DB: month.db, Days: 7}), Reader{month.db, 7}}
	if added, dropped := week.keep(); added != 0 || dropped != 30-7 || week.rows() != 1 {
		t.Errorf("keeping a week: %d days added, %d dropped, %d rows", added, dropped, week.rows())
	}
	// An instance with another setting still writes to its days.
	month.report(1, time.Now().AddDate(0, 0, -21), report{telematics.Battery: 50.0})
	month.report(1, time.Now().AddDate(0, 0, -2), report{telematics.Battery: 50.0})
	month.Flush(t.Context())
	if n := testutil.ToFloat64(month.metrics.dropped.WithLabelValues(string(samples.Refused))); n != 1 || month.rows() != 2 {
		t.Errorf("%v samples refused, %d rows; want 1 and 2", n, month.rows())
	}
	off := instance{t, NewRecorder(Config{DB: month.db}), Reader{month.db, 0}}
	off.report(1, time.Now(), report{telematics.Battery: 50.0})
	if added, dropped := off.keep(); added != 0 || dropped != 7+1+daysAhead || off.sampler.Waiting() != 0 {
		t.Errorf("turned off: %d days added, %d dropped, %d samples waiting", added, dropped, off.sampler.Waiting())
	}
}

// A backup reads all days for hours.
func TestKeep_AddsDaysWhileNoneCanBeDropped(t *testing.T) {
	t.Parallel()
	i := newInstance(t, storetest.NewDatabase(t), 8)
	storetest.Exec(t, i.DB.Pool, `drop table telemetry_`+time.Now().UTC().Format("2006_01_02"))
	backup, err := i.DB.Pool.Beginx()
	require.NoError(t, err)
	storetest.Exec(t, backup, `lock table telemetry in access share mode`)
	week := instance{t, NewRecorder(Config{DB: i.DB, Days: 7}), i.Reader}
	if added, dropped, err := week.Keep(t.Context()); added != 1 || dropped != 0 || !errors.Is(err, errNotDropped) {
		t.Errorf("%d days added, %d dropped, %v; want 1 and none, and that said", added, dropped, err)
	}
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, week.keepPartitions(ctx, func() { close(ready); cancel() }))
	<-ready
	require.NoError(t, backup.Rollback())
	if added, dropped := week.keep(); added != 0 || dropped != 1 {
		t.Errorf("after the backup: %d days added, %d dropped, want none and 1", added, dropped)
	}
}

func TestRun_WritesTheRestWhereItEndsBeforeItsFirstDayExists(t *testing.T) {
	t.Parallel()
	i := newInstance(t, storetest.NewDatabase(t), 7)
	i.report(1, recently(), report{telematics.Battery: 50.0})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := i.Recorder.Run(ctx); err != nil || i.rows() != 1 {
		t.Errorf("%v, %d rows, want 1", err, i.rows())
	}
}

func TestRecorder_KeepsSamplesWhilePostgresIsUnavailable(t *testing.T) {
	t.Parallel()
	p := storetest.StartPostgres(t, false)
	db := storetest.OpenWith(t, pg.Config{URL: p.Database(storetest.Template), Timeout: time.Second})
	i := instance{t, NewRecorder(Config{DB: db, Days: 7}), Reader{db, 7}}
	i.keep()
	require.NoError(t, p.Close())
	begin := recently()
	for n := range 3 {
		i.report(1, begin.Add(time.Duration(n)*samples.Resting), report{telematics.Battery: 50.0})
		i.Flush(t.Context())
	}
	assert.Equal(t, i.sampler.Waiting(), 3, "samples wait")
}

// A sample takes at most this many bytes on disk, with its index.
func TestRecorder_ASampleIsSmall(t *testing.T) {
	t.Parallel()
	const vehicles, intervals, most = 200, 100, 140
	i, begin := newInstance(t, storetest.NewDatabase(t), 7), recently().AddDate(0, 0, -2)
	for n := range intervals {
		for vehicle := range telematics.VehicleID(vehicles) {
			i.report(vehicle+1, begin.Add(time.Duration(n)*samples.Resting), report{
				telematics.SpeedKmh: 0.0, telematics.Battery: 80.0, telematics.OnboardV: 12.5, telematics.RSRP: -90.0,
				telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.IsLocked: true, telematics.Ignition: "off",
			})
		}
		i.Flush(t.Context())
	}
	var bytes int64
	require.NoError(t, i.DB.Pool.Get(&bytes, `select sum(pg_table_size(inhrelid) + pg_indexes_size(inhrelid)) from pg_inherits
		where inhparent = 'telemetry'::regclass`))
	each := float64(bytes) / (vehicles * intervals)
	t.Logf("%.0f bytes a sample", each)
	if i.rows() != vehicles*intervals || each > most {
		t.Errorf("%d rows, %.0f bytes each, which is more than allowed", i.rows(), each)
	}
}

// A clock leaps ahead by a month: the days of then have no partition yet.
func TestRecorder_AddsAMissingDay(t *testing.T) {
	t.Parallel()
	i, begin := newInstance(t, storetest.NewDatabase(t), 7), recently()
	storetest.Exec(t, i.DB.Pool, `drop table telemetry_`+begin.Format("2006_01_02"))
	i.report(1, begin, report{telematics.Battery: 50.0})
	i.Flush(t.Context())
	if n := testutil.ToFloat64(i.metrics.dropped.WithLabelValues(string(samples.Refused))); n != 0 || i.rows() != 1 {
		t.Errorf("%v samples refused, %d rows; want none and 1", n, i.rows())
	}
	if ahead, err := i.DB.Ahead(t.Context(), "telemetry"); err != nil || ahead < daysAhead*day || ahead > (daysAhead+1)*day {
		t.Errorf("Ahead = %v, %v; want between %d and %d days", ahead, err, daysAhead, daysAhead+1)
	}
}
