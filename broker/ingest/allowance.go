package ingest

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/telematics"
)

// Allowance limits the messages of one kind that are accepted from one unit, so that a unit that
// floods its topics delays no other.
type Allowance struct {
	Rate  float64 // messages a second
	Burst int     // messages at one moment; as many may wait to be handled
	Bytes int     // of messages that wait to be handled
}

// Limiter keeps each unit to its allowance. It is safe for concurrent use.
type Limiter struct {
	Allowance

	mu      sync.Mutex
	senders *lru.Cache[telematics.Unit, *Sender]
}

// Sender is a unit's token bucket, with the number and size of its messages that wait to be
// handled. It is safe for concurrent use.
type Sender struct {
	mu      sync.Mutex
	tokens  float64
	at      time.Time // of tokens
	waiting int
	bytes   int
	arrived time.Time // of the latest report that has no other time
}

// NewLimiter returns a limiter under which no unit has used its allowance.
func NewLimiter(a Allowance) *Limiter {
	return &Limiter{Allowance: a, senders: NewCache[telematics.Unit, *Sender](maxSenders)}
}

// NewCache returns a cache of at least one value, of which the one that was used least lately goes.
func NewCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return cache
}

// Admit counts a message against its unit's allowance; it counts as waiting until Handled is called
// on the returned sender. It returns nil and false where the unit is beyond its allowance.
func (l *Limiter) Admit(unit telematics.Unit, size int, now time.Time) (*Sender, bool) {
	s := l.sender(unit, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if passed := now.Sub(s.at); passed > 0 {
		s.tokens = min(float64(l.Burst), s.tokens+l.Rate*passed.Seconds())
	}
	s.at = now // also where the clock was set back: it may have been ahead by days
	if s.tokens < 1 || s.waiting >= l.Burst || s.bytes+size > l.Bytes {
		return nil, false
	}
	s.tokens--
	s.waiting++
	s.bytes += size
	return s, true
}

func (l *Limiter) sender(unit telematics.Unit, now time.Time) *Sender {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.senders.Get(unit)
	if !ok {
		s = &Sender{tokens: float64(l.Burst), at: now}
		l.senders.Add(unit, s)
	}
	return s
}

// Handled ends the wait of a message that Admit has counted. It does nothing for a nil sender.
func (s *Sender) Handled(size int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	s.bytes -= size
}

// order returns when a report arrived that has no other time, in milliseconds: later than the one
// before it. A unit that was offline sends several within a millisecond.
func (s *Sender) order(arrived time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !arrived.After(s.arrived) && s.arrived.Sub(arrived) < maxEarly {
		arrived = s.arrived.Add(time.Millisecond)
	}
	s.arrived = arrived
	return arrived
}

// noisy counts the messages that were dropped since the last warning because their unit was beyond
// its allowance.
type noisy struct {
	mu    sync.Mutex
	units map[telematics.Unit]map[Kind]int
}

// Limit counts a message that is dropped because its unit is beyond its allowance.
func (in *Ingest) Limit(unit telematics.Unit, kind Kind) {
	in.Reject(unit, kind, telematics.OverAllowance)
	in.noisy.mu.Lock()
	defer in.noisy.mu.Unlock()
	n := in.noisy.units[unit]
	if n == nil {
		if len(in.noisy.units) == maxNoisy {
			return
		}
		n = map[Kind]int{}
		in.noisy.units[unit] = n
	}
	n[kind]++
}

// warnNoisy names the noisiest units in the log.
func (in *Ingest) warnNoisy() {
	in.noisy.mu.Lock()
	units := in.noisy.units
	in.noisy.units = map[telematics.Unit]map[Kind]int{}
	in.noisy.mu.Unlock()
	all := func(u telematics.Unit) int { return units[u][Answer] + units[u][Report] + units[u][Presence] }
	for i, u := range slices.SortedFunc(maps.Keys(units),
		func(a, b telematics.Unit) int { return cmp.Or(all(b)-all(a), cmp.Compare(a, b)) }) {
		if i == warnUnits {
			in.Logger.Warn("more units over their allowance", "units", len(units)-warnUnits)
			return
		}
		in.Logger.Warn("unit over its allowance, messages dropped", "unit", u,
			"answers", units[u][Answer], "reports", units[u][Report], "presence", units[u][Presence], "within", warnEvery)
	}
}
