package places

import "sync/atomic"

// Counts tells what the finder of this instance has done since it started.
type Counts struct{ asked, found, none, failed atomic.Int64 }

// All returns the counts by their names.
func (c *Counts) All() map[string]int64 {
	return map[string]int64{
		"addresses_asked":  c.asked.Load(),  // requests to the geocoder
		"addresses_found":  c.found.Load(),  // of those: it said an address
		"addresses_none":   c.none.Load(),   // of those: it said that there is none
		"addresses_failed": c.failed.Load(), // of those: it said nothing
	}
}
