package request

import (
	"context"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Limiter counts requests against limits, for all instances together.
type Limiter interface {
	// Take takes from limits in their order, and stops at the first that has too little left, from
	// which it takes nothing. It returns the quotas of the limits up to that one. An error means
	// that not all were counted; it is returned within a fraction of a second.
	Take(context.Context, ...telematics.Limit) ([]telematics.Quota, error)
}

// Vehicles knows the agencies of vehicles.
type Vehicles interface {
	// Belongs reports whether a vehicle belongs to an agency. After a move to another agency, a
	// cached true is possible until a claim reads Postgres again: do not authorise a command or a
	// read by it alone.
	Belongs(context.Context, telematics.VehicleID, telematics.AgencyID) (bool, error)
}

// Keys reads the results of idempotency keys.
type Keys interface {
	// FindByKey returns the command or the bulk of the first request with an idempotency key.
	FindByKey(context.Context, telematics.IdempotencyKey) (delivery.KeyResult, bool, error)
}

// History adds audit log entries of reads.
type History interface {
	// Add blocks until the entry is durable.
	Add(context.Context, telematics.Activity) error
}

// Refusals adds audit log entries of requests that are refused before the controller gets them.
type Refusals interface {
	// Record adds the entry, now or as soon as the audit log is available.
	Record(context.Context, telematics.Activity)
	// Omit counts an entry that is not added, because its actor was refused too often.
	Omit(context.Context, telematics.Activity)
}
