package audit

import (
	"strings"
	"time"
)

// leftFor is how long an entry may live from when its command was made: the longest budget, the minute for late answers,
// and ten seconds to spare.
const leftFor = 100 * time.Second

// latestFor is how long the latest state of a vehicle that has fallen silent may live.
const latestFor = time.Hour

// isLog reports whether an entry is the log of events, which is bounded by its length.
func (e Entry) isLog() bool { return e.Key == "motorpool:events" }

// isLatest reports whether an entry is what is known of a vehicle.
func (e Entry) isLatest() bool { return strings.HasSuffix(e.Key, ":latest") }

// Stays reports whether an entry is none of a command, and there to stay.
func (e Entry) Stays() bool { return e.isLog() || e.isLatest() }

// nothingLeft claims that whatever is left in Redis after everything has settled goes by itself, and soon. Two things
// are there to stay: the log of events, which is bounded by its length, and what is known of vehicles.
func nothingLeft(h *hearing) {
	h.checked++ // the look itself
	for i := range h.Pending {
		e := &h.Pending[i]
		about := command()
		if id := commandOf(e); h.rows[id] != nil {
			about = command(id)
		}
		if e.isLog() {
			continue
		}
		most := leftFor + h.ahead[commandOf(e)]
		if e.isLatest() {
			most = latestFor
		}
		h.must(e.TTL >= 0, about, "%s stays for ever", e.Key)
		h.must(e.TTL <= most, about, "%s stays for %v", e.Key, e.TTL)
	}
}
