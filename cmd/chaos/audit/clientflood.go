package audit

import (
	"time"

	"motorpool/telematics"
)

// ClientFlood is one client's attempt to harm the others: it signs far more changes than its limit lets through, while Redis has little room.
type ClientFlood struct {
	Interval
	Requests, Limited int // made, and refused for the client's rate
	Kept              int // signatures that are kept of that client, in Redis and Postgres
	Full              int // writes that Redis refused because it is full
	// Replayed is what a signed change was answered that came once more after Redis was emptied.
	Replayed telematics.Code
}

// mostSignatures is how many signatures of a client are kept, at most.
const mostSignatures = 2000

// clientFloodHarmsNobody claims that a client over its limit leaves no more than a bounded number of signatures behind, that Redis is not
// filled by them, and that no command of others is refused meanwhile because a server of ours is unavailable; and that a signature is
// used once, whatever Redis forgets.
func clientFloodHarmsNobody(h *hearing) {
	f := h.ClientFlood
	if f.Requests == 0 {
		return
	}
	about := command()
	h.must(f.Limited > f.Requests/2, about, "of %d requests of one client in %v only %d were over its limit", f.Requests, f.To.Sub(f.From).Round(time.Second), f.Limited)
	h.must(f.Kept <= mostSignatures, about, "%d signatures of the client are kept", f.Kept)
	h.must(f.Full == 0, about, "Redis was full, and refused %d writes", f.Full)
	h.must(f.Replayed == "agency_signature_replayed", about, "a signature that came again after Redis was emptied was answered %q", f.Replayed)
	for i := range h.Calls {
		if c := &h.Calls[i]; c.Start.After(f.From) && c.Start.Before(f.To) {
			h.must(c.Code != telematics.TelematicsUnavailable, called(c), "refused with %s during the flood", c.Code)
		}
	}
}
