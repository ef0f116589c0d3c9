// Package rental is the commercial side of a shared fleet: bookings, prices, payment methods, and
// automatic charges.
//
//	admin, client ─► decision about a booking ─► one transaction: booking, charges, audit log entry
//	                 (BookingDetails)                                      │
//	processor ◄── charging.Collector ◄── charges that are due ◄────────────┘
//	    └── notices (webhooks) ─► query what changed there ─► the charge as it is there
//
// Decisions are pure: [BookingDetails] holds everything that is known of a booking, and each
// decision returns the [Change] that it makes of it, or an error that says why not. The record
// writes a change whole.
//
// # Money
//
//   - Money is whole minor units of an ISO 4217 currency. There is no floating point anywhere.
//   - A charge is written with the change that causes it, in one transaction [MON-1].
//   - A charge is one object at the processor, whatever fails: it is created without moving
//     money, its id is stored, and only then is it carried out [MON-2].
//   - What may have been carried out is looked at before anything else is done about it [MON-3].
//
// The package does no I/O. The ports that it needs are in ports.go.
package rental
