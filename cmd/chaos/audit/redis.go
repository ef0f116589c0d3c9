package audit

import "time"

// leftFor is how long an entry may live from when its command was made: the longest budget, the minute for late answers,
// and ten seconds to spare.
const leftFor = 100 * time.Second

// nothingLeft claims that whatever is left in Redis after everything has settled goes by itself, and soon.
func nothingLeft(h *hearing) {
	h.checked++ // the look itself
	for i := range h.Pending {
		e := &h.Pending[i]
		about := command()
		if id := commandOf(e); h.rows[id] != nil {
			about = command(id)
		}
		h.must(e.TTL >= 0, about, "%s stays for ever", e.Key)
		h.must(e.TTL <= leftFor, about, "%s stays for %v", e.Key, e.TTL)
	}
}
