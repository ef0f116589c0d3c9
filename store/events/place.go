package events

import (
	"cmp"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/telematics"
)

// entryID is the id of an entry in a stream: the milliseconds of the server's clock, and a number
// among those of the same millisecond.
type entryID struct{ ms, seq uint64 }

func parseEntryID(s string) (entryID, bool) {
	ms, seq, ok := strings.Cut(s, "-")
	id, errMS := strconv.ParseUint(ms, 10, 64)
	n, errSeq := strconv.ParseUint(seq, 10, 64)
	return entryID{id, n}, ok && errMS == nil && errSeq == nil
}

func (i entryID) String() string {
	return strconv.FormatUint(i.ms, 10) + "-" + strconv.FormatUint(i.seq, 10)
}

func (i entryID) compare(j entryID) int {
	return cmp.Or(cmp.Compare(i.ms, j.ms), cmp.Compare(i.seq, j.seq))
}

// later returns the later one of two.
func later(i, j entryID) entryID {
	if i.compare(j) < 0 {
		return j
	}
	return i
}

// place is a place in the log: the last entry before it, of each stream.
type place []entryID

// parsePlace reports false for a text that is no place in this log.
func (l *Log) parsePlace(s string) (place, bool) {
	ids := strings.Split(s, ".")
	if len(ids) != len(l.keys) {
		return nil, false
	}
	p := make(place, len(ids))
	for i := range ids {
		var ok bool
		if p[i], ok = parseEntryID(ids[i]); !ok {
			return nil, false
		}
	}
	return p, true
}

func (p place) String() string {
	ids := make([]string, len(p))
	for i := range p {
		ids[i] = p[i].String()
	}
	return strings.Join(ids, ".")
}

// through moves the place past entries, and returns their events, each with the place after it as
// its id.
func (p place) through(entries []entry) []telematics.Event {
	events := make([]telematics.Event, len(entries))
	for i, e := range entries {
		p[e.stream] = e.id
		events[i] = e.event
		events[i].ID = p.String()
	}
	return events
}

// entry is an event in its stream.
type entry struct {
	stream int
	id     entryID
	event  telematics.Event
}

// byTime orders the entries of several streams, each of which is in order, by the clocks of their
// servers.
func byTime(a, b entry) int { return cmp.Compare(a.id.ms, b.id.ms) }

func decodeEntries(stream int, messages []goredis.XMessage) []entry {
	events := decodeEvents(messages)
	entries := make([]entry, len(messages))
	for i, m := range messages {
		id, _ := parseEntryID(m.ID) // Redis made it
		entries[i] = entry{stream, id, events[i]}
	}
	return entries
}
