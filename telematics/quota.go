package telematics

import "time"

// Rate is how many requests may be made in a time. The zero Rate is any number.
type Rate struct {
	Limit int
	Per   time.Duration
}

// Limit names a limit, and says how much of it a request takes.
type Limit struct {
	Key  string
	Rate Rate
	Cost int
}

// Quota is what a limit has left after a request asked for its share. The zero Quota says
// that there is no limit.
type Quota struct {
	Limit     int  // in the time of its rate
	Remaining int  // how many more would pass now
	Over      bool // this one is over the limit, and took nothing
	// Until the whole limit is there again; over the limit: until one more passes.
	Reset time.Duration
}
