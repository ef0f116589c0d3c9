package watch

import (
	"context"

	"motorpool/guard"
	"motorpool/telematics"
)

// followBookings watches the units of running bookings while this instance holds the lease.
func (w *Watches) followBookings(ctx context.Context) error {
	protocols := w.Dialects.WatchableNames()
	if w.Booked == nil || len(protocols) == 0 {
		return nil
	}
	for {
		if w.readBookings(ctx); !guard.Pause(ctx, readEvery) {
			return nil
		}
	}
}

// readBookings watches the units of the bookings that are running now, and ends the watches of the
// others; without the turn, of all. Where the turn or the bookings cannot be read, the watches
// stay.
func (w *Watches) readBookings(ctx context.Context) {
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
	before := w.booked
	w.booked = make(map[telematics.Unit]func(), len(vehicles))
	for _, v := range vehicles {
		if end := before[v.Unit]; end != nil {
			w.booked[v.Unit] = end
			delete(before, v.Unit)
		} else if w.booked[v.Unit] == nil {
			w.booked[v.Unit] = w.Begin(v)
		}
	}
	for _, end := range before {
		end()
	}
}
