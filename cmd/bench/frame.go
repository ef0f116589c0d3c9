package main

import (
	"bytes"
	"hash/fnv"
	"sync/atomic"
	"time"
)

// scanner reads a stream of server-sent events by their lines. Hundreds of readers share two cores with what they measure: so it
// looks at no more than it must, and reads the time in a few events of a hundred.
type scanner struct {
	seen   seen
	told   atomic.Int64 // events so far, for others to read
	rest   []byte       // of a line that has not ended
	id     []byte
	kind   []byte
	sample int                   // the time is read in every n-th event; 0: in none
	late   func(at time.Time)    // told of those
	each   func(kind, id string) // told of each event, where somebody wants to know
}

// seen is what a reader has been told.
type seen struct {
	Events int64  `json:"events"` // of statuses
	Order  uint64 `json:"order"`  // a sum over their ids, in order
	Resets int    `json:"resets"`
	End    string `json:"end"` // data of the end event; empty: there was none
}

var (
	idField, eventField, dataField = []byte("id: "), []byte("event: "), []byte("data: ")
	statusKind, resetKind, endKind = []byte("status"), []byte("reset"), []byte("end")
	atKey                          = []byte(`"at":"`)
)

// take reads on.
func (s *scanner) take(text []byte) {
	defer func() { s.told.Store(s.seen.Events) }()
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			s.rest = append(s.rest, text...)
			return
		}
		line := text[:end]
		if len(s.rest) > 0 {
			s.rest = append(s.rest, line...)
			s.line(s.rest)
			s.rest = s.rest[:0]
		} else {
			s.line(line)
		}
		text = text[end+1:]
	}
}

func (s *scanner) line(line []byte) {
	switch {
	case len(line) == 0: // what came before is whole
		if len(s.kind) > 0 {
			s.event()
		}
		s.kind = s.kind[:0]
	case bytes.HasPrefix(line, idField):
		s.id = append(s.id[:0], line[len(idField):]...)
	case bytes.HasPrefix(line, eventField):
		s.kind = append(s.kind[:0], line[len(eventField):]...)
	case bytes.HasPrefix(line, dataField):
		s.data(line[len(dataField):])
	}
}

func (s *scanner) event() {
	switch {
	case bytes.Equal(s.kind, statusKind):
		s.seen.Events++
		s.seen.Order = chain(s.seen.Order, s.id)
	case bytes.Equal(s.kind, resetKind):
		s.seen.Resets++
	}
	if s.each != nil {
		s.each(string(s.kind), string(s.id))
	}
}

func (s *scanner) data(data []byte) {
	if bytes.Equal(s.kind, endKind) {
		s.seen.End = string(data)
	}
	if s.sample == 0 || !bytes.Equal(s.kind, statusKind) || s.seen.Events%int64(s.sample) != 0 {
		return
	}
	if begin := bytes.Index(data, atKey); begin >= 0 {
		text := data[begin+len(atKey):]
		if at, err := time.Parse(timeForm, string(text[:min(len(timeForm), len(text))])); err == nil {
			s.late(at)
		}
	}
}

// chain adds an id to the sum over those before it.
func chain(sum uint64, id []byte) uint64 {
	h := fnv.New64a()
	var before [8]byte
	for i := range before {
		before[i] = byte(sum >> (8 * i))
	}
	_, _ = h.Write(before[:]) // a hash takes everything
	_, _ = h.Write(id)
	return h.Sum64()
}
