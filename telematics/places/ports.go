package places

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Record stores stations and addresses.
type Record interface {
	// Stations returns the stations of an agency; zero: of all agencies.
	Stations(context.Context, telematics.AgencyID) ([]telematics.Station, error)
	// Addresses returns the addresses with an id greater than after, in ascending order; of more
	// than limit, the last ones. A lower id never becomes visible after a higher one.
	Addresses(ctx context.Context, after int64, limit int) ([]telematics.Address, error)
}

// Fleet lists the positions of vehicles that stand.
type Fleet interface {
	// Parked leaves out vehicles that drive.
	Parked(context.Context) ([]telematics.Parked, error)
}

// Leases let one instance at a time query the geocoder and store its answers.
type Leases interface {
	// AcquireLease acquires the lease for the time hold, and returns the number of failed requests
	// in a row; or false while another instance has it, or requests are delayed.
	AcquireLease(ctx context.Context, holder uuid.UUID, hold time.Duration) (failures int, taken bool, err error)
	// KeepAddress stores an answer and extends the lease, or returns false if the lease was lost.
	KeepAddress(ctx context.Context, holder uuid.UUID, a telematics.Address, hold time.Duration) (bool, error)
	// ReleaseLease ends the lease, and delays the requests of every instance by putOff.
	ReleaseLease(ctx context.Context, holder uuid.UUID, failures int, putOff time.Duration) error
	// ForgetAddresses deletes addresses older than age, and all but the newest keep.
	ForgetAddresses(ctx context.Context, age time.Duration, keep int) error
}

// Geocoder returns the address of a position.
type Geocoder interface {
	// Address returns the address, or "" if there is none. An error means that the request
	// failed; its method RetryAfter() time.Duration, if any, returns how long to send none.
	Address(context.Context, telematics.Position) (string, error)
}
