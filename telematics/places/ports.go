package places

import (
	"context"

	"motorpool/telematics"
)

// Stations lists stations; the zero value of a query: all of them.
type Stations interface {
	ListStations(context.Context, telematics.AgencyQuery) ([]telematics.Station, error)
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
