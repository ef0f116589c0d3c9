package samples

import (
	"time"

	"motorpool/telematics"
)

// Query selects samples of a vehicle, and the number of buckets to aggregate them in.
type Query struct {
	Vehicle  telematics.VehicleID
	Agency   telematics.AgencyID // that had the vehicle at the time; zero: any
	From, To time.Time           // From is inclusive, To exclusive
	Buckets  int                 // of equal length, at least one
}

// Width returns the length of a bucket.
func (q Query) Width() time.Duration { return q.To.Sub(q.From) / time.Duration(q.Buckets) }

// Bucket aggregates the samples, at least one, of a part of the queried time.
type Bucket struct {
	Begin time.Time

	Energy, Voltage, Speed, Signal *Values // nil: none was reported

	Position  *telematics.Position // the latest; nil: likewise
	LocatedAt time.Time            // when it was reported
	Locked    *bool                // the latest; nil: likewise
	Ignition  *bool                // likewise
}

// Values are the least, the mean and the greatest of the values of a field.
type Values struct{ Min, Avg, Max float64 }
