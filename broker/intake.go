package broker

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/telematics"
)

// allowance bounds what one unit sends of one kind of message, so that a unit that floods its topics delays no other.
type allowance struct {
	rate  float64 // messages a second
	burst int     // messages at one moment; as many may wait to be handled
	bytes int     // of messages that wait to be handled
}

// A unit that keeps the protocol stays far below these. After a long time offline it sends the answers that were not
// acknowledged, at most one received and one final answer of each of the 64 commands that it keeps [CMD-5].
var (
	answerAllowance   = allowance{rate: 20, burst: 128, bytes: 1 << 20}
	reportAllowance   = allowance{rate: 100, burst: 512, bytes: 1 << 20}
	presenceAllowance = allowance{rate: 5, burst: 64, bytes: 1 << 20}
	// doubtAllowance is of answers beyond their allowance that are looked up in the pending table, all in a few trips.
	doubtAllowance = allowance{rate: 10_000, burst: 512, bytes: 1 << 20}
)

// intake keeps each unit to its allowance. It is safe for concurrent use.
type intake struct {
	allowance

	mu      sync.Mutex
	senders *lru.Cache[telematics.Unit, *sender]
}

// sender is the account of one unit: a token bucket, and what of the unit waits to be handled.
type sender struct {
	mu      sync.Mutex
	tokens  float64
	at      time.Time // of tokens
	waiting int
	bytes   int
}

func newIntake(a allowance) *intake {
	senders, err := lru.New[telematics.Unit, *sender](maxSenders)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &intake{allowance: a, senders: senders}
}

// admit takes a message into its unit's account, until handled is called on the sender. It reports false where the unit is beyond its
// allowance.
func (in *intake) admit(unit telematics.Unit, size int, now time.Time) (*sender, bool) {
	s := in.sender(unit, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if passed := now.Sub(s.at); passed > 0 {
		s.tokens = min(float64(in.burst), s.tokens+in.rate*passed.Seconds())
	}
	s.at = now // also where the clock was set back: it may have been ahead by days
	if s.tokens < 1 || s.waiting >= in.burst || s.bytes+size > in.bytes {
		return nil, false
	}
	s.tokens--
	s.waiting++
	s.bytes += size
	return s, true
}

func (in *intake) sender(unit telematics.Unit, now time.Time) *sender {
	in.mu.Lock()
	defer in.mu.Unlock()
	s, ok := in.senders.Get(unit)
	if !ok {
		s = &sender{tokens: float64(in.burst), at: now}
		in.senders.Add(unit, s)
	}
	return s
}

// handled gives back the room of a message; nil: it took none.
func (s *sender) handled(size int) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	s.bytes -= size
}
