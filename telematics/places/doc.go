// Package places gives positions an address: that of the agency's station nearby, else the
// geocoder's answer for the place.
//
// A read does not block: where no answer is known, it has no address, and the geocoder is queried
// in the background, for the next read:
//
//	read: station? known? ──no──► geocoder, one request a second ──► known
//
// An answer belongs to the place, not to a vehicle: it counts for every position of the same cell,
// whose corners are less than 50 m apart. So ten cars on one lot cost one request, a car that comes
// back costs none, and what is kept does not show which vehicle was where.
package places
