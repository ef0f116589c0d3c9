package telematics

import "time"

// Stranger is a unit that talks to us and belongs to no vehicle: one that was built in
// and not put on record, or one that should have been switched off.
type Stranger struct {
	No        int64 // of the acquaintance: grows with the first contact
	Unit      Unit
	FirstSeen time.Time // by our clock
	LastSeen  time.Time // by our clock
	Messages  int64     // heard of it, about: each instance hears a presence
}

// What is remembered of strangers.
const (
	MaxStrangers     = 10_000              // more than these, and those that were silent for longest are forgotten
	StrangersKeptFor = 30 * 24 * time.Hour // after the last message
)

// Met returns what is known of the stranger after it was heard some more. The order in which
// instances tell does not matter.
func (s Stranger) Met(again Stranger) Stranger {
	if s.FirstSeen.IsZero() || again.FirstSeen.Before(s.FirstSeen) {
		s.FirstSeen = again.FirstSeen
	}
	if again.LastSeen.After(s.LastSeen) {
		s.LastSeen = again.LastSeen
	}
	s.Unit, s.Messages = again.Unit, s.Messages+again.Messages
	return s
}
