package transitions

import "time"

// Waits are how long transitions wait for what.
type Waits struct {
	// Pay is between two looks at a payment that another instance carries out; PayLong, once it
	// waits for a person. Half doubles the queries; double delays the opening of a vehicle.
	Pay, PayLong time.Duration
	// PayAtLeast is how long a start waits for its payment where the agency's payment wait is
	// shorter. Half gives up on processors that are slow for a moment; double has a client who went
	// away keep the vehicle for longer.
	PayAtLeast time.Duration
	// OpenWithin is how long after its request, or after the payment was due, a vehicle may still
	// be ordered to open. Half gives up after short outages; double opens vehicles for clients who
	// have left.
	OpenWithin time.Duration
	// Momentary is for how long a start is ordered again for which nothing was sent, for a reason
	// that passes. Half takes payments back for a reconnection; double has a client wait for
	// longer.
	Momentary time.Duration
	// Confirm is between two looks at a command whose result is unknown.
	Confirm time.Duration
	// StartUnknown is how long a start waits for the result of its command, and for the client who
	// can try the door. Then the vehicle is locked, and nothing is charged. Half takes the vehicle
	// from clients with a bad connection; double keeps their money for longer.
	StartUnknown time.Duration
	// PauseUnknown likewise for a pause or resumption, which then has failed.
	PauseUnknown time.Duration
	// EndUnknown is after how long the command of an end is ordered again. Half orders it while an
	// answer of a slow network may still come; double leaves vehicles open for longer.
	EndUnknown time.Duration
	// OrderAgain is after how long a command that must be executed, and was not, is ordered again.
	OrderAgain time.Duration
	// Refund is between two looks at payments that are taken back.
	Refund time.Duration
	// Staff is after how long a person should look at a transition.
	Staff time.Duration
	// Broken is after how long a step is taken again that a store has failed.
	Broken time.Duration
}

// DefaultWaits are the waits of the service.
var DefaultWaits = Waits{
	Pay: 250 * time.Millisecond, PayLong: 2 * time.Second, PayAtLeast: time.Minute,
	OpenWithin: time.Minute, Momentary: 5 * time.Second, Confirm: time.Second, StartUnknown: 5 * time.Minute,
	PauseUnknown: time.Minute, EndUnknown: 10 * time.Second, OrderAgain: 15 * time.Second, Refund: time.Second,
	Staff: 5 * time.Minute, Broken: 5 * time.Second,
}

// leaseFor is how long a transition is its worker's, from each write: for longer than a payment or
// a command takes. Half: a slow worker loses it, and a start fails. Double: a start whose worker
// has died fails, since nothing opens after Waits.OpenWithin.
const leaseFor = 30 * time.Second

// payHere is for how long the worker of a start itself waits for the payment: most processors
// answer within it. Half writes the row more often; double keeps its lease for longer.
const payHere = 10 * time.Second

// awaitEvery is between two looks at a transition that another instance may carry on.
const awaitEvery = 500 * time.Millisecond
