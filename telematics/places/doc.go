// Package places gives vehicles an address: that of the agency's station nearby, else the
// geocoder's answer for the place.
//
// # Reads do not block
//
// The [Book] is a cache in memory. It is filled in the background, from Postgres: stations,
// and the addresses that were requested.
//
// # Geocoder requests
//
// The [Finder] finds vehicles that stand where the book has no address, and queries the
// geocoder, outside of any request:
//
//	record: where vehicles stand ──► book: known? ──no──► geocoder, one request a second
//	                                   ▲                          │
//	          every instance's book ◄──┴── record: addresses ◄────┘
//
// All instances together send one request at a time: the sender holds a lease, a row in
// Postgres. Each answer extends it. Its release stores the time before which no instance
// may send again. It expires if its holder dies.
//
// # Addresses belong to places, not to vehicles
//
// An address belongs to the position that was requested, and applies to every vehicle
// within [telematics.MovedBy] of it. So ten cars on one lot cost one request, a car that
// comes back costs none, and the stored addresses do not show which vehicle was where.
//
// # Laws
//
// Over all instances, at least a second passes between the answer to one request and the
// start of the next one. Each failure in a row delays the next request for longer, at all
// instances, and at least for as long as the server asks.
package places
