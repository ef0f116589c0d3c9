package broker

import (
	"context"
	"sync"
	"time"

	"motorpool/telematics"
)

// halts is what was last read of the halts in force.
type halts struct {
	changed func([]telematics.HaltChange) // is called with what a reading shows to be new

	mu   sync.Mutex
	last telematics.Halts
	at   time.Time // when the reading began
}

func (h *halts) fresh(now time.Time) (telematics.Halts, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, !h.at.IsZero() && now.Sub(h.at) < HaltWithin
}

func (h *halts) put(read telematics.Halts, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !at.After(h.at) {
		return
	}
	if !h.at.IsZero() { // else nothing is known of what was before
		h.changed(read.Changes(h.last))
	}
	h.last, h.at = read, at
}

// watchHalts reads the halts again and again, until the context ends.
func (b *Broker) watchHalts(ctx context.Context) error {
	tick := time.NewTicker(haltsEvery)
	defer tick.Stop()
	for {
		if err := b.readHalts(ctx); err != nil && ctx.Err() == nil {
			b.Logger.Warn("halts not read, no command is sent until they are", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (b *Broker) readHalts(ctx context.Context) error {
	ctx, cancel := b.step(ctx)
	defer cancel()
	at := time.Now()
	read, err := b.Halts.Halts(ctx)
	if err == nil {
		b.halts.put(read, at)
	}
	return err
}

// halt returns the halt that keeps an agency's commands from leaving, if there is one.
func (b *Broker) halt(ctx context.Context, agency telematics.AgencyID) (telematics.Halt, bool, error) {
	last, fresh := b.halts.fresh(time.Now())
	if !fresh {
		if err := b.readHalts(ctx); err != nil {
			return telematics.Halt{}, false, err
		}
		last, _ = b.halts.fresh(time.Now())
	}
	halt, halted := last.Stops(agency)
	return halt, halted, nil
}

// knownHalt returns the halt that is known to keep an agency's commands from leaving.
func (b *Broker) knownHalt(agency telematics.AgencyID) (telematics.Halt, bool) {
	last, _ := b.halts.fresh(time.Now())
	return last.Stops(agency)
}

// isHalted reports whether a halt is known to keep an agency's commands from leaving.
func (b *Broker) isHalted(agency telematics.AgencyID) bool {
	_, halted := b.knownHalt(agency)
	return halted
}

// mayLeave reports whether a message to a vehicle of the agency may be handed over now. Who cannot
// know whether there is a halt hands nothing over, and neither does one whose clock is wrong.
func (b *Broker) mayLeave(agency telematics.AgencyID) bool {
	if b.clock.err() != nil {
		return false
	}
	last, fresh := b.halts.fresh(time.Now())
	_, halted := last.Stops(agency)
	return fresh && !halted
}
