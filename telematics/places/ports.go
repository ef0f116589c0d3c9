package places

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Record is where stations and addresses are kept.
type Record interface {
	// Stations returns the stations of an agency, or of all for zero.
	Stations(context.Context, telematics.AgencyID) ([]telematics.Station, error)
	// Addresses returns, by id, the addresses after the one with an id; of more than limit the last
	// ones. They appear in the order of their ids.
	Addresses(ctx context.Context, after int64, limit int) ([]telematics.Address, error)
}

// Fleet lists where vehicles stand.
type Fleet interface {
	// Parked leaves out what drives.
	Parked(context.Context) ([]telematics.Parked, error)
}

// Leases let one instance at a time ask the geocoder, and keep what it said.
type Leases interface {
	// AcquireLease takes the lease for the time hold, and returns the number of failed requests in
	// a row; or false while another instance has it, or it is put off.
	AcquireLease(ctx context.Context, holder uuid.UUID, hold time.Duration) (failures int, taken bool, err error)
	// KeepAddress keeps an answer, and extends the lease; or reports that the lease was lost.
	KeepAddress(ctx context.Context, holder uuid.UUID, a telematics.Address, hold time.Duration) (bool, error)
	// ReleaseLease ends the lease, and delays the requests of every instance by putOff.
	ReleaseLease(ctx context.Context, holder uuid.UUID, failures int, putOff time.Duration) error
	// ForgetAddresses removes addresses older than age, and all but the last keep.
	ForgetAddresses(ctx context.Context, age time.Duration, keep int) error
}

// Geocoder turns a position into words.
type Geocoder interface {
	// Address returns the address, or "" where there is none. An error says that it could not
	// be found; one with a method RetryAfter() time.Duration says how long to send no request.
	Address(context.Context, telematics.Position) (string, error)
}
