package broker

import (
	"context"
	"time"

	"motorpool/broker/ingest"
	"motorpool/guard"
	"motorpool/telematics"
)

// dueWaiters returns how many waiters are due between two parts of a poll; parts are counted from
// the start. However long the last read took, these are no more than in one pollEvery.
func dueWaiters(waiting, from, to int) int {
	most := min(waiting, pollMost)
	from = max(from, to-pollParts)
	return most*to/pollParts - most*from/pollParts
}

// hint notes that a command may have changed: its unit has received it, or it was settled. It
// queues that, and does not block.
func (b *Broker) hint(id telematics.CommandID) {
	select {
	case b.hints <- id:
	default: // the next poll finds it
	}
}

// pollRecord reads changes of commands from Postgres for the waiters of this process: immediately
// for hints, together for those that have come, and for each waiter every pollEvery, or less often
// beyond pollMost.
func (b *Broker) pollRecord(ctx context.Context) error {
	poll := time.NewTicker(pollEvery / pollParts)
	defer poll.Stop()
	began, polled := time.Now(), 0 // parts since
	var outage guard.Outage
	read := func(of waiting) {
		if len(of.unanswered)+len(of.received) == 0 && b.waiters.count() > 0 {
			return // nothing is read, so an outage goes on
		}
		outage.Note(ctx, b.config.Logger, "settled commands not read", b.readUpdates(ctx, of))
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case id := <-b.hints:
			read(waiting{unanswered: ingest.Gather(b.hints, id)})
		case <-poll.C:
			// More than one where the last read took long.
			due := int(time.Since(began) / (pollEvery / pollParts))
			read(b.waiters.next(dueWaiters(b.waiters.count(), polled, due)))
			polled = due
		}
	}
}

func (b *Broker) readUpdates(ctx context.Context, of waiting) error {
	if len(of.unanswered)+len(of.received) == 0 {
		return nil
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	updates, err := b.config.Commands.Updates(ctx, of.unanswered, of.received)
	if err != nil {
		return err
	}
	for i := range updates {
		if w := b.waiters.find(updates[i].ID); w != nil {
			w.notify(&updates[i])
		}
	}
	return nil
}
