package resource

import (
	"math"
	"slices"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// HistoryFields are the fields of a history.
var HistoryFields = []string{"energy", "voltage", "speed", "signal", "position", "locked", "ignition"}

// History is the samples of a vehicle in buckets of equal length; buckets without samples are left
// out. A column has a value, or null, for each bucket; a column that was not requested is null.
type History struct {
	VehicleID     int64    `json:"vehicle_id"`
	From          string   `json:"from"`
	To            string   `json:"to"`
	RetentionDays int      `json:"retention_days"`
	BucketSeconds float64  `json:"bucket_seconds"`
	Times         []string `json:"times"`

	Energy   *Values    `json:"energy"`
	Voltage  *Values    `json:"voltage"`
	Speed    *Values    `json:"speed"`
	Signal   *Values    `json:"signal"`
	Position *Positions `json:"position"`
	Locked   []*bool    `json:"locked"`
	Ignition []*bool    `json:"ignition"`
}

// Values are the least, the mean and the greatest value in each bucket.
type Values struct {
	Min []*float64 `json:"min"`
	Avg []*float64 `json:"avg"`
	Max []*float64 `json:"max"`
}

// Positions are the latest position in each bucket, and when it was reported.
type Positions struct {
	Latitude  []*float64 `json:"latitude"`
	Longitude []*float64 `json:"longitude"`
	At        []*string  `json:"at"`
}

// NewHistory returns the requested fields of buckets.
func NewHistory(q samples.Query, days int, fields []string, buckets []samples.Bucket) History {
	h := History{
		VehicleID: int64(q.Vehicle), From: Timestamp(q.From), To: Timestamp(q.To), RetentionDays: days, BucketSeconds: q.Width().Seconds(),
		Times: List(buckets, func(b samples.Bucket) string { return Timestamp(b.Begin) }),
	}
	column := func(name string, of func(samples.Bucket) *samples.Values) *Values {
		if !slices.Contains(fields, name) {
			return nil
		}
		return newValues(buckets, of)
	}
	h.Energy = column("energy", func(b samples.Bucket) *samples.Values { return b.Energy })
	h.Voltage = column("voltage", func(b samples.Bucket) *samples.Values { return b.Voltage })
	h.Speed = column("speed", func(b samples.Bucket) *samples.Values { return b.Speed })
	h.Signal = column("signal", func(b samples.Bucket) *samples.Values { return b.Signal })
	if slices.Contains(fields, "position") {
		h.Position = &Positions{[]*float64{}, []*float64{}, []*string{}}
		for _, b := range buckets {
			var latitude, longitude *float64
			if b.Position != nil {
				latitude, longitude = &b.Position.Latitude, &b.Position.Longitude
			}
			h.Position.Latitude, h.Position.Longitude = append(h.Position.Latitude, latitude), append(h.Position.Longitude, longitude)
			h.Position.At = append(h.Position.At, TimestampOrNull(b.LocatedAt))
		}
	}
	if slices.Contains(fields, "locked") {
		h.Locked = List(buckets, func(b samples.Bucket) *bool { return b.Locked })
	}
	if slices.Contains(fields, "ignition") {
		h.Ignition = List(buckets, func(b samples.Bucket) *bool { return b.Ignition })
	}
	return h
}

func newValues(buckets []samples.Bucket, of func(samples.Bucket) *samples.Values) *Values {
	v := &Values{[]*float64{}, []*float64{}, []*float64{}}
	for _, b := range buckets {
		var least, mean, most *float64
		if values := of(b); values != nil {
			rounded := math.Round(values.Avg*100) / 100
			least, mean, most = &values.Min, &rounded, &values.Max
		}
		v.Min, v.Avg, v.Max = append(v.Min, least), append(v.Avg, mean), append(v.Max, most)
	}
	return v
}

// Track is the positions of a booking's vehicle as a feature of GeoJSON (RFC 7946).
type Track struct {
	Type       string          `json:"type"`
	Geometry   *Geometry       `json:"geometry"` // null: no position is on record
	Properties TrackProperties `json:"properties"`
}

// Geometry is a LineString; for a single position, a Point; for a way across the 180th meridian, a
// MultiLineString.
type Geometry struct {
	Type        string `json:"type"`
	Coordinates any    `json:"coordinates"`
}

// TrackProperties describe a track. Times and Speeds have an element for each position, in the
// order of the coordinates.
type TrackProperties struct {
	BookingID     int64    `json:"booking_id"`
	VehicleID     int64    `json:"vehicle_id"`
	From          *string  `json:"from"` // null: the booking has not begun
	To            *string  `json:"to"`   // null: it has not ended
	RetentionDays int      `json:"retention_days"`
	BucketSeconds *float64 `json:"bucket_seconds"` // null: likewise
	Times         []string `json:"times"`

	Speeds []*float64 `json:"speeds"`
}

// NewTrack returns the track of a booking, in buckets of a width, which is zero if it has not
// begun.
func NewTrack(b rental.Booking, days int, width time.Duration, buckets []samples.Bucket) Track {
	t := Track{Type: "Feature", Properties: TrackProperties{
		BookingID: int64(b.ID), VehicleID: int64(b.VehicleID), From: TimestampOrNull(b.ActualStart), To: TimestampOrNull(b.ActualEnd),
		RetentionDays: days, BucketSeconds: OrNull(width.Seconds()), Times: []string{},
	}}
	buckets = slices.DeleteFunc(slices.Clone(buckets), func(b samples.Bucket) bool { return b.Position == nil })
	buckets, parts := cutAtMeridian(buckets)
	for _, b := range buckets {
		t.Properties.Times = append(t.Properties.Times, Timestamp(b.LocatedAt))
	}
	t.Properties.Speeds = newValues(buckets, func(b samples.Bucket) *samples.Values { return b.Speed }).Avg
	switch {
	case len(buckets) == 0:
	case len(buckets) == 1:
		t.Geometry = &Geometry{"Point", parts[0][0]}
	case len(parts) == 1:
		t.Geometry = &Geometry{"LineString", parts[0]}
	default:
		t.Geometry = &Geometry{"MultiLineString", parts}
	}
	return t
}

// cutAtMeridian divides a line where it crosses the 180th meridian (RFC 7946, 3.1.9). Each part
// ends and begins on the meridian: these positions, with their times, are interpolated and added to
// the buckets.
func cutAtMeridian(line []samples.Bucket) (all []samples.Bucket, parts [][][2]float64) {
	add := func(b samples.Bucket) {
		last := len(parts) - 1
		all, parts[last] = append(all, b), append(parts[last], [2]float64{b.Position.Longitude, b.Position.Latitude})
	}
	for i, b := range line {
		if i == 0 {
			parts = append(parts, nil)
		} else if before := line[i-1]; math.Abs(b.Position.Longitude-before.Position.Longitude) > 180 {
			edge := math.Copysign(180, before.Position.Longitude)
			add(between(before, b, edge))
			parts = append(parts, nil)
			add(between(before, b, -edge))
		}
		add(b)
	}
	return all, parts
}

// between returns where and when a vehicle crossed the 180th meridian, on the straight line between
// two positions, as a bucket with this longitude.
func between(from, to samples.Bucket, longitude float64) samples.Bucket {
	first, rest := 180-math.Abs(from.Position.Longitude), 180-math.Abs(to.Position.Longitude)
	share := 0.0
	if first+rest > 0 {
		share = first / (first + rest)
	}
	return samples.Bucket{
		Position: &telematics.Position{
			Latitude:  from.Position.Latitude + share*(to.Position.Latitude-from.Position.Latitude),
			Longitude: longitude,
		},
		LocatedAt: from.LocatedAt.Add(time.Duration(share * float64(to.LocatedAt.Sub(from.LocatedAt))).Round(time.Millisecond)),
	}
}
