package httpapi_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// telemetry has buckets in memory, and records the queries.
type telemetry struct {
	days    int
	buckets []samples.Bucket
	asked   []samples.Query
	err     error
}

func (m *telemetry) TelemetryDays() int { return m.days }

func (m *telemetry) Telemetry(_ context.Context, q samples.Query) ([]samples.Bucket, error) {
	m.asked = append(m.asked, q)
	return m.buckets, m.err
}

func (m *telemetry) last() samples.Query { return m.asked[len(m.asked)-1] }

func newTelemetry() *telemetry {
	locked := true
	return &telemetry{days: 7, buckets: []samples.Bucket{
		{
			Begin: now.Add(-time.Hour), Energy: &samples.Values{Min: 60, Avg: 60.3333, Max: 61},
			Position: &telematics.Position{Latitude: 48.1, Longitude: 11.5}, LocatedAt: now.Add(-59 * time.Minute),
			Locked: &locked,
		},
		{
			Begin: now.Add(-time.Minute), Voltage: &samples.Values{Min: 12, Avg: 12, Max: 12},
			Speed: &samples.Values{Min: 30, Avg: 30, Max: 30}, Signal: &samples.Values{Min: 70, Avg: 70, Max: 70},
		},
	}}
}

func with(m *telemetry) func(*httpapi.Config) {
	return func(c *httpapi.Config) { c.Telemetry = m }
}

const historyPath = "/api/v1/admin/vehicles/42/history"

func TestHistory_HasAValueOrNullForEachBucket(t *testing.T) {
	m := newTelemetry()
	a := newAPI(t, with(m))
	r := a.get(historyPath+"?fields=energy,position,locked&from=2026-01-02T09:00:00Z&to=2026-01-02T10:00:00%2B00:00&points=60").
		wants(200, "")
	if want := (samples.Query{Vehicle: 42, From: now.Truncate(time.Hour).Add(-time.Hour), To: now.Truncate(time.Hour),
		Buckets: 60}); m.last() != want {
		t.Errorf("query %+v, want %+v", m.last(), want)
	}
	for name, want := range map[string]any{
		"vehicle_id": 42.0, "from": "2026-01-02T09:00:00.000Z", "to": "2026-01-02T10:00:00.000Z", "retention_days": 7.0,
		"bucket_seconds": 60.0,
		"times":          []any{"2026-01-02T09:00:00.250Z", "2026-01-02T09:59:00.250Z"},
		"energy":         map[string]any{"min": []any{60.0, nil}, "avg": []any{60.33, nil}, "max": []any{61.0, nil}}, "voltage": nil,
		"speed": nil, "ignition": nil,
		"position": map[string]any{"latitude": []any{48.1, nil}, "longitude": []any{11.5, nil},
			"at": []any{"2026-01-02T09:01:00.250Z", nil}},
		"locked": []any{true, nil},
	} {
		same(t, r.at(name), want, "%s", name)
	}
}

func TestHistory_EachFieldHasItsOwnValues(t *testing.T) {
	r := newAPI(t, with(newTelemetry())).get(historyPath).wants(200, "")
	for field, want := range map[string][]any{"energy": {60.0, nil}, "voltage": {nil, 12.0}, "speed": {nil, 30.0}, "signal": {nil, 70.0}} {
		same(t, r.at(field, "min"), any(want), "%s", field)
	}
}

func TestHistory_TimesAndBucketsAreBounded(t *testing.T) {
	m := newTelemetry()
	a := newAPI(t, with(m))
	a.get(historyPath).wants(200, "")
	if q := m.last(); !q.To.Equal(now) || !q.From.Equal(now.AddDate(0, 0, -1)) || q.Buckets != 300 || q.Agency != 0 {
		t.Errorf("default query %+v, want the last day in 300 buckets", q)
	}
	a.get(historyPath+"?points=1000&from=2026-01-02T09:59:00Z&to=2026-01-02T10:00:00Z", ofAgency(1)).wants(200, "")
	if q := m.last(); q.Buckets != 4 || q.Agency != 1 {
		t.Errorf("query of a minute by agency 1 %+v, want 4 buckets", q)
	}
	for query, field := range map[string]string{
		"fields=energy,colour": "fields", "from=2026-01-02T10:00:00Z&to=2026-01-02T09:00:00Z": "from", "from=2026-01-03T00:00:00Z": "from",
		"from=2025-11-01T00:00:00Z": "from", "to=yesterday": "to",
		"to=0000-01-01T00:00:00Z": "to", "points=0": "points", "points=1001": "points",
	} {
		if r := a.get(historyPath+"?"+query).wants(422, "validation_failed"); !strings.Contains(r.text, `"`+field+`":[`) {
			t.Errorf("%s: %s, want an error for the field", query, r.text)
		}
	}
	a.get(strings.Replace(historyPath, "42", "9", 1), ofAgency(1)).wants(404, "vehicle_not_found")
	m.err = gone{}
	a.get(historyPath).wants(503, "service_unavailable")
}

func TestHistory_EachReadIsRecorded(t *testing.T) {
	m := newTelemetry()
	a := newAPI(t, with(m))
	entry := a.added(func() { a.get(historyPath+"?fields=energy&from=2026-01-02T09:00:00Z").wants(200, "") })
	want := map[string]any{"fields": "energy", "from": "2026-01-02T09:00:00.000Z", "to": "2026-01-02T10:00:00.250Z"}
	like(t, entry, logged{Action: "history.read", Vehicle: 42, Agency: 1, Outcome: telematics.Executed,
		Details: want}, "entry")
	entry = a.added(func() { a.get(strings.Replace(historyPath, "42", "77", 1)).wants(404, "vehicle_not_found") })
	like(t, entry, logged{Action: "history.read", Vehicle: 77, Outcome: telematics.NotExecuted,
		Code: telematics.VehicleNotFound}, "entry")
}

func TestHistory_IsEmptyWithoutRetention(t *testing.T) {
	r := newAPI(t).get(historyPath).wants(200, "")
	r.has("retention_days", 0.0, "times", []any{})
}

func TestTrack_IsAGeoJSONFeatureOfTheBooking(t *testing.T) {
	m := newTelemetry()
	a := newBookingAPI(t, with(m))
	const path = "/api/v1/admin/bookings/42/track"
	var r *response
	entry := a.added(func() { r = a.get(path).wants(200, "") })
	d := a.bookings.byID[42]
	if q := m.last(); q.Vehicle != d.VehicleID || q.Agency != d.Agency || !q.From.Equal(d.ActualStart) || !q.To.Equal(now) ||
		q.Buckets != 300 {
		t.Errorf("query %+v, want the vehicle and times of the booking", q)
	}
	like(t, entry, logged{Action: "history.read", Booking: 42, Vehicle: d.VehicleID, Agency: d.Agency}, "entry")
	r.has("type", "Feature", "geometry", map[string]any{"type": "Point", "coordinates": []any{11.5, 48.1}})
	m.buckets = append(
		m.buckets,
		samples.Bucket{
			Begin: now, Position: &telematics.Position{Latitude: 48.2, Longitude: 11.6}, LocatedAt: now,
			Speed: &samples.Values{Min: 0, Avg: 20.006, Max: 50},
		},
	)
	r = a.get(path+"?points=2").wants(200, "")
	if want := map[string]any{
		"type": "LineString", "coordinates": []any{[]any{11.5, 48.1}, []any{11.6, 48.2}},
	}; !reflect.DeepEqual(r.at("geometry"), want) ||
		m.last().Buckets != 2 {
		t.Errorf("track of two positions: %s, want a line", r.text)
	}
	if want := []any{
		nil, 20.01,
	}; !reflect.DeepEqual(r.at("properties", "speeds"), want) ||
		r.at("properties", "bucket_seconds") != m.last().Width().Seconds() {
		t.Errorf("properties of the track: %s", r.text)
	}
	asked := len(m.asked)
	a.get(strings.Replace(path, "42", "43", 1)).wants(200, "").has("geometry", nil, "properties.bucket_seconds", nil)
	same(t, len(m.asked), asked, "queries for the track of a booking that has not begun")
	a.get(path, ofAgency(2)).wants(404, "booking_not_found")
}

// RFC 7946, 3.1.9: else maps draw a line round the world.
func TestTrack_IsCutAtThe180thMeridian(t *testing.T) {
	m := newTelemetry()
	a := newBookingAPI(t, with(m))
	type line = []any
	at := func(longitude, latitude float64) any { return []any{longitude, latitude} }
	for name, c := range map[string]struct {
		way   [][2]float64 // longitude, latitude; a second apart
		kind  string
		want  any
		times []float64 // in seconds
	}{
		"to the east": {[][2]float64{{179.99, 10}, {-179.97, 14}}, "MultiLineString",
			[]any{line{at(179.99, 10), at(180, 11)}, line{at(-180, 11), at(-179.97, 14)}}, []float64{0, 0.25, 0.25, 1}},
		"to the west": {[][2]float64{{-179.99, 10}, {179.99, 12}}, "MultiLineString",
			[]any{line{at(-179.99, 10), at(-180, 11)}, line{at(180, 11), at(179.99, 12)}}, []float64{0, 0.5, 0.5, 1}},
		"there and back": {[][2]float64{{179.5, 1}, {-179.5, 1}, {-179.4, 1}, {179.5, 1}}, "MultiLineString", []any{
			line{at(179.5, 1), at(180, 1)}, line{at(-180, 1), at(-179.5, 1), at(-179.4, 1), at(-180, 1)}, line{at(180, 1), at(179.5, 1)},
		}, []float64{0, 0.5, 0.5, 1, 2, 2.545, 2.545, 3}},
		"on the meridian": {[][2]float64{{180, 1}, {-180, 3}}, "MultiLineString",
			[]any{line{at(180, 1), at(180, 1)}, line{at(-180, 1), at(-180, 3)}}, []float64{0, 0, 0, 1}},
		"across the equator":   {[][2]float64{{-0.1, -1}, {0.1, 1}}, "LineString", line{at(-0.1, -1), at(0.1, 1)}, []float64{0, 1}},
		"half round the Earth": {[][2]float64{{-90, 1}, {90, 1}}, "LineString", line{at(-90, 1), at(90, 1)}, []float64{0, 1}},
	} {
		m.buckets = nil
		for i, p := range c.way {
			m.buckets = append(m.buckets, samples.Bucket{
				Position: &telematics.Position{
					Longitude: p[0], Latitude: p[1],
				},
				LocatedAt: now.Add(time.Duration(i) * time.Second), Speed: &samples.Values{Avg: 50},
			})
		}
		r := a.get("/api/v1/admin/bookings/42/track").wants(200, "")
		times, speeds := r.at("properties", "times").([]any), r.at("properties", "speeds").([]any)
		if r.at("geometry", "type") != c.kind || len(times) != len(c.times) || len(speeds) != len(c.times) {
			t.Errorf("%s: %s", name, r.text)
			continue
		}
		same(t, rounded(r.at("geometry", "coordinates")), c.want, "%s: coordinates", name)
		if reported := len(speeds) - countNull(speeds); reported != len(c.way) {
			t.Errorf("%s: speeds %v, want those of the reported positions", name, speeds)
		}
		for i, want := range c.times {
			got, err := time.Parse(time.RFC3339, times[i].(string))
			if after := got.Sub(now).Seconds(); err != nil || math.Abs(after-want) > 0.001 {
				t.Errorf("%s: position %d is of %v s, want %v s", name, i, after, want)
			}
		}
	}
}

// rounded rounds the numbers of nested lists to millionths.
func rounded(value any) any {
	switch value := value.(type) {
	case float64:
		return math.Round(value*1e6) / 1e6
	case []any:
		list := make([]any, len(value))
		for i, v := range value {
			list[i] = rounded(v)
		}
		return list
	}
	return value
}

func countNull(values []any) (n int) {
	for _, v := range values {
		if v == nil {
			n++
		}
	}
	return n
}

// drive returns a history of a drive of a kilometre, in a minute that ended 30 minutes ago, and
// what was reported after it.
func drive() *telemetry {
	m := newTelemetry()
	m.buckets = nil
	for i, metres := range []float64{0, 500, 1000, 1000} {
		m.buckets = append(m.buckets, samples.Bucket{
			Position:  &telematics.Position{Latitude: 48 + metres/111_195, Longitude: 11.5},
			LocatedAt: now.Add(time.Duration(i-62) * 30 * time.Second),
		})
	}
	return m
}

const tripsPath = "/api/v1/admin/vehicles/42/trips"

func TestTrips_HaveTheirDistanceAndDriver(t *testing.T) {
	m := drive()
	a := newBookingAPI(t, with(m))
	day := "?from=2026-01-01T10:00:00Z&to=2026-01-02T10:00:00Z"
	handedOver := now.Add(-30*time.Minute - 25*time.Second) // the next client has it for less of it
	for id, used := range map[rental.BookingID][2]time.Time{
		42: {now.Add(-2 * time.Hour), now.Add(-time.Hour)}, 44: {now.Add(-time.Hour), handedOver}, 46: {handedOver, now},
	} {
		a.set(id, func(d *rental.BookingDetails) { d.ActualStart, d.ActualEnd = used[0], used[1] })
	}
	a.get(tripsPath+day, ofAgency(1)).wants(200, "").says("1 trip.").lists(1).meta("retention_days", 7.0).has(
		"0.from", "2026-01-02T09:29:00.250Z", "0.to", "2026-01-02T09:30:00.250Z", "0.distance_km", 1.0,
		"0.start.latitude", 48.0, "0.start.address", "agency 1 at 48, 11.5",
		"0.booking_id", 44.0, "0.booking_reference", "BK-2026-00042", "0.client", "client-2",
	)
	from, to := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	same(t, m.last(), samples.Query{Vehicle: 42, Agency: 1, From: from, To: to, Buckets: 5760}, "query")
	same(t, a.bookings.asked, rental.BookingQuery{Vehicle: 42, Agency: 1, From: from, To: to}, "bookings")
	a.wantsEntries(logged{Action: telematics.HistoryRead, Vehicle: 42, Agency: 1, Outcome: telematics.Executed})

	for id := range a.bookings.byID {
		a.set(id, func(d *rental.BookingDetails) { d.ActualStart, d.ActualEnd = now.Add(-29*time.Minute), time.Time{} })
	}
	a.set(46, func(d *rental.BookingDetails) { d.ActualStart = time.Time{} }) // it has not begun
	a.get(tripsPath).wants(200, "").has("0.booking_id", nil, "0.client", nil)
	m.buckets = nil
	a.get(tripsPath).wants(200, "").says("0 trips.").shows(`"data":[]`)
}

func TestTrips_AreAFileOfGPX(t *testing.T) {
	a := newAPI(t, with(drive()))
	r := a.get(tripsPath + ".gpx?from=2026-01-02T09:00:00Z").answers(200)
	r.heads("Content-Type", "application/gpx+xml", "Content-Disposition", "attachment; filename=vehicle-42-2026-01-02-0900.gpx")
	r.shows(
		`<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="Motorpool">`,
		`<trkpt lat="48" lon="11.5">`, `<time>2026-01-02T09:30:00.250Z</time>`,
	)
	same(t, strings.Count(r.text, "<trkpt"), 3, "points")
	a.wantsEntries(logged{Action: telematics.HistoryRead, Vehicle: 42, Outcome: telematics.Executed})
}

func TestTrips_AreOfVisibleVehicles(t *testing.T) {
	m := drive()
	a := newBookingAPI(t, with(m))
	for _, path := range []string{tripsPath, tripsPath + ".gpx"} {
		a.get(path, ofAgency(2)).wants(404, "vehicle_not_found")
		like(t, a.lastEntry(), logged{Action: telematics.HistoryRead, Code: "vehicle_not_found", Agency: 2}, "entry")
		a.get(path + "?from=2026-01-03T10:00:00Z&to=2026-01-02T10:00:00Z").invalid("from")
		a.get(path + "?from=2025-01-03T10:00:00Z").invalid("from")
	}
	same(t, len(m.asked), 0, "queries")
	a.bookings.err = gone{}
	a.get(tripsPath).wants(503, "service_unavailable")
}
