// Package places gives vehicles an address: that of the agency's station nearby, else the
// geocoder's answer for the place.
//
// # A read never waits
//
// The [Book] is in memory and answers from what it has. It is filled in the background,
// from the record: stations, and the addresses that were asked for.
//
// # Asking
//
// The [Finder] looks for vehicles that stand where the book knows nothing, and asks the
// geocoder, outside of any request:
//
//	record: where vehicles stand ──► book: known? ──no──► geocoder, one request a second
//	                                   ▲                          │
//	          every instance's book ◄──┴── record: addresses ◄────┘
//
// All instances together send one request at a time: the one that sends holds a lease, a
// row in Postgres. Each answer extends it; it is given back with the time before which no
// instance may send again; and it expires when its holder died.
//
// # A place's, not a vehicle's
//
// An address belongs to the place that was asked for, and holds for whatever stands
// within [telematics.MovedBy] of it. So ten cars on one lot cost one request, a car that
// comes back costs none, and what is kept says nothing about who was where.
//
// # Laws
//
// Between the answer to one request and the start of the next one lies at least a second,
// at all instances together. A request that failed puts off the next one for longer each
// time, at all instances, and as long as the server asks for.
package places
