package telematics

import "time"

// Rate allows Limit requests in the time Per. The zero Rate allows any number.
type Rate struct {
	Limit int
	Per   time.Duration
}

// Limit is a named rate limit, and how much of it a request takes.
type Limit struct {
	Key  string
	Rate Rate
	Cost int
}

// Quota is the rest of a limit after a request has taken its cost. The zero Quota means
// that there is no limit.
type Quota struct {
	Limit     int  // within Rate.Per
	Remaining int  // how many more are allowed now
	Over      bool // the request was over the limit, and took nothing
	// Until the whole limit is available again; if Over: until the next request is allowed.
	Reset time.Duration
}
