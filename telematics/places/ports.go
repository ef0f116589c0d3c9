package places

import (
	"context"

	"motorpool/telematics"
)

// Stations stores stations.
type Stations interface {
	// Stations returns the stations of an agency; zero: of all agencies.
	Stations(context.Context, telematics.AgencyID) ([]telematics.Station, error)
}

// Geocoder returns the address of a position.
type Geocoder interface {
	// Address returns the address, or "" if there is none. An error means that the request
	// failed; its method RetryAfter() time.Duration, if any, returns how long to send none.
	Address(context.Context, telematics.Position) (string, error)
}

// Limiter counts requests against limits, for all instances together.
type Limiter interface {
	Take(context.Context, ...telematics.Limit) ([]telematics.Quota, error)
}
