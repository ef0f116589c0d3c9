package watch

import (
	"context"
	"time"

	"motorpool/telematics"
)

// followBookings watches the units of running bookings while this instance holds the lease.
func (w *Watches) followBookings(ctx context.Context) error {
	protocols := w.Dialects.WatchableNames()
	if w.Booked == nil || len(protocols) == 0 {
		return nil
	}
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		w.round++
		w.readBookings(ctx, w.round)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readBookings watches the units of the bookings that are running now, and ends the watches of the
// others; without the turn, of all. Where the turn or the bookings cannot be read, the watches
// stay.
func (w *Watches) readBookings(ctx context.Context, round int) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	mine, err := w.TryLease(ctx)
	var vehicles []telematics.Vehicle
	if err == nil && mine {
		vehicles, err = w.Booked(ctx, w.Dialects.WatchableNames())
	}
	if err != nil {
		w.Logger.DebugContext(ctx, "vehicles of running bookings not read, current watches stay", "err", err)
		return
	}
	for _, v := range vehicles {
		w.book(v, round)
	}
	w.dropBooked(round)
}

func (w *Watches) book(v telematics.Vehicle, round int) {
	dialect, ok := w.Dialects.Watchable(v.Protocol)
	if !ok || v.Unit == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	booked := w.add(v.Unit, dialect)
	booked.booked, booked.round = true, round
}

// dropBooked ends the watches for bookings of units that were not in the given round of reads.
func (w *Watches) dropBooked(round int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.units {
		if u.booked && u.round != round {
			u.booked = false
			w.endSoon(u)
		}
	}
}
