package link

import (
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"motorpool/telematics"
)

// replay watches over the retained messages that a subscription brings. Where some did not fit, the
// subscription has to be made again: the MQTT broker sends each of them once for a subscription,
// and units say nothing new for long. So it has where a live one did not fit, which the MQTT broker
// retains, too.
//
// The callback is not held up until there is room, which would keep the MQTT client from reading:
// the connection would be lost after a missing PINGRESP, and the MQTT broker would drop what it
// cannot send. The MQTT broker sends the messages in the same order each time, so those that were
// taken are skipped, or the first ones would fill the queue again and again.
type replay struct {
	to   func(telematics.Message) bool
	seed maphash.Seed

	mu     sync.Mutex
	taken  map[uint64]struct{} // hashes of the retained ones that fitted; nil: none is missing
	missed int                 // since the subscription
	latest time.Time
}

func newReplay(to func(telematics.Message) bool) *replay {
	return &replay{to: to, seed: maphash.MakeSeed(), taken: map[uint64]struct{}{}}
}

// take hands a message over, unless it is a retained one that was taken before.
func (r *replay) take(topic string, m telematics.Message) {
	if !m.Retained {
		if !r.to(m) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.missed++
		}
		return
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.WriteString(topic) // never fails
	_ = h.WriteByte(0)
	_, _ = h.Write(m.Payload)
	sum := h.Sum64()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = time.Now()
	if _, known := r.taken[sum]; known {
		return
	}
	switch {
	case !r.to(m): // which hands over and returns
		r.missed++
	case r.taken != nil:
		r.taken[sum] = struct{}{}
	}
}

// watch calls subscribe again, after growing pauses, for as long as messages are missing. It
// returns when that fails, or done is closed.
func (r *replay) watch(first time.Duration, log *slog.Logger, line string, subscribe func() error, done <-chan struct{}) error {
	for pause, rounds := first, 1; ; {
		select {
		case <-time.After(pause):
		case <-done:
			return nil
		}
		missed, taken, quiet := r.since(first)
		switch {
		case !quiet: // they are still coming
		case missed == 0:
			if rounds > 1 {
				log.Info("all retained messages taken", "connection", line, "count", taken, "subscriptions", rounds)
			}
			pause, rounds = first, 1
		default:
			rounds++
			pause = min(time.Duration(float64(pause)*replayGrow), longestPause)
			log.Warn("queue full, subscribing again to retained messages", "connection", line, "missed", missed, "taken", taken, "next_in", pause)
			if err := subscribe(); err != nil {
				return err
			}
		}
	}
}

// since returns how many retained messages did not fit since the last subscription and how many did
// in all, and reports whether none came for a while. Where none is missing, no more are remembered.
func (r *replay) since(quiet time.Duration) (missed, taken int, isQuiet bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	missed, taken = r.missed, len(r.taken)
	if time.Since(r.latest) < quiet {
		return missed, taken, false
	}
	r.missed = 0
	switch {
	case missed == 0:
		r.taken = nil
	case r.taken == nil:
		r.taken = map[uint64]struct{}{}
	}
	return missed, taken, true
}
