package broker

import (
	"context"
	"sync"
	"time"

	"motorpool/guard"
	"motorpool/telematics"
)

// halts are the halts in force, as they were read last.
type halts struct {
	changed func([]telematics.HaltChange) // is called with what is new in a reading

	mu   sync.Mutex
	last telematics.Halts
	at   time.Time // when the reading began
	wall time.Time // likewise, by the wall clock alone
}

// latest returns the halts that were read last, and whether that was within HaltWithin by both
// clocks: the monotonic one stands still while the machine is suspended.
func (h *halts) latest(wall time.Time) (telematics.Halts, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, !h.at.IsZero() && max(time.Since(h.at), wall.Sub(h.wall)) < HaltWithin
}

// set stores the halts of a reading, unless those of a later reading are stored, and publishes the
// changes.
func (h *halts) set(read telematics.Halts, at, wall time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !at.After(h.at) {
		return
	}
	if !h.at.IsZero() { // else there is no earlier reading to compare with
		h.changed(read.Changes(h.last))
	}
	h.last, h.at, h.wall = read, at, wall
}

// watchHalts reads the halts every haltsEvery, until the context ends.
func (b *Broker) watchHalts(ctx context.Context) error {
	var outage guard.Outage
	read := func() { outage.Note(ctx, b.config.Logger, "halts not read, no command is sent", b.readHalts(ctx)) }
	read()
	return b.each(ctx, haltsEvery, "read halts", read)
}

func (b *Broker) readHalts(ctx context.Context) error {
	ctx, cancel := b.step(ctx)
	defer cancel()
	at, wall := time.Now(), b.now()
	read, err := b.config.Halts.Halts(ctx)
	if err == nil {
		b.halts.set(read, at, wall)
	}
	return err
}

// halt returns the halt that stops an agency's commands, if there is one. It reads Postgres where
// the latest reading is older than HaltWithin.
func (b *Broker) halt(ctx context.Context, agency telematics.AgencyID) (telematics.Halt, bool, error) {
	last, fresh := b.halts.latest(b.now())
	if !fresh {
		if err := b.readHalts(ctx); err != nil {
			return telematics.Halt{}, false, err
		}
		last, _ = b.halts.latest(b.now())
	}
	halt, halted := last.Stops(agency)
	return halt, halted, nil
}

// knownHalt returns the halt that stops an agency's commands by the latest reading, however old.
func (b *Broker) knownHalt(agency telematics.AgencyID) (telematics.Halt, bool) {
	last, _ := b.halts.latest(b.now())
	return last.Stops(agency)
}

// isHalted reports whether a halt stops an agency's commands by the latest reading, however old.
func (b *Broker) isHalted(agency telematics.AgencyID) bool {
	_, halted := b.knownHalt(agency)
	return halted
}

// mayPublish reports whether a message to a vehicle of the agency may be published now: no halt is
// in force, the halts were read within HaltWithin, and the clock is not known to be wrong.
func (b *Broker) mayPublish(agency telematics.AgencyID) bool {
	if b.clock.err() != nil {
		return false
	}
	last, fresh := b.halts.latest(b.now())
	_, halted := last.Stops(agency)
	return fresh && !halted
}
