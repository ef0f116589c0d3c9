// Package nominatim queries a server with the reverse geocoding API of Nominatim
// (https://nominatim.org/release-docs/latest/api/Reverse/) for the address of a position.
//
// It identifies itself in User-Agent, as the usage policy of the public server demands
// (https://operations.osmfoundation.org/policies/nominatim/), and returns how long the
// server demands a pause. Limiting the rate of requests is up to the caller.
package nominatim
