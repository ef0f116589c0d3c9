// Package nominatim asks a server that speaks the reverse geocoding API of Nominatim
// (https://nominatim.org/release-docs/latest/api/Reverse/) for the address of a position.
// It is the only place that knows that API.
//
// It names itself in User-Agent, as the usage policy of the public server demands
// (https://operations.osmfoundation.org/policies/nominatim/), and tells for how long a
// server wants to be left alone. That it is asked seldom enough is up to the caller.
package nominatim
