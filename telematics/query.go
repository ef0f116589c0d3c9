package telematics

import "time"

// Page asks for a part of a list, newest first.
type Page struct {
	Limit  int   // at most this many
	Before int64 // only what is older than this position; zero: from the newest
}

// VehicleQuery selects vehicles. Zero fields select everything.
type VehicleQuery struct {
	Agency       AgencyID // that owns them
	Status       VehicleStatus
	Connectivity PresenceStatus
	Text         string // part of plate, brand, model or unit, in any case
	Page
}

// ActivityQuery selects audit log entries. Zero fields select everything.
type ActivityQuery struct {
	Agency  AgencyID
	Vehicle VehicleID
	Booking int64
	Actor   string // subject
	Action  string
	Outcome Outcome
	From    time.Time // inclusive
	To      time.Time // exclusive
	Page
}
