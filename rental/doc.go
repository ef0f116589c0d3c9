// Package rental is the commercial side of a shared fleet: bookings, prices, payment methods, and
// automatic charges.
//
//	admin, client ─► decision about a booking ─► one transaction: booking, charges, audit log entry
//	                 (BookingDetails)                                      │
//	processor ◄── charging.Collector ◄── charges that are due ◄────────────┘
//	    └── notices (webhooks) ─► query what changed there ─► the charge as it is there
//
// Decisions are pure functions: [BookingDetails] holds all data about a booking, and each decision
// returns the [Change] to be stored, or an error with the reason why not. The store writes a change
// in one transaction.
//
// # Money
//
//   - Money is whole minor units of an ISO 4217 currency. There is no floating point anywhere.
//   - A charge is written with the change that causes it, in one transaction [MON-1].
//   - A charge is one object at the processor, whatever fails: it is created without moving
//     money, its id is stored, and only then is it carried out [MON-2].
//   - A request that may have been executed is queried before anything else is done [MON-3].
//
// The package does no I/O. The ports that it needs are in ports.go.
package rental
