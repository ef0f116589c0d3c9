package telematics

import "time"

// Quota is what a limit has left after a request asked for its share. The zero Quota says
// that there is no limit.
type Quota struct {
	Limit     int           // a minute
	Remaining int           // how many more would pass now
	Over      bool          // this one is over the limit, and took nothing
	Reset     time.Duration // until the whole limit is there again; over the limit: until one more passes
}
