package broker

import (
	"context"
	"time"

	"motorpool/telematics"
)

// pollEvery is how often the record is asked for what wake-ups may have missed.
const pollEvery = time.Second

// hint notes that there may be news of a command. It hands over and returns.
func (b *Broker) hint(id telematics.CommandID) {
	select {
	case b.hints <- id:
	default: // the next poll finds it
	}
}

// tellNews reads from the record what waiters of this process must know: at once
// for hints, as many as have come, and for all of them each second.
func (b *Broker) tellNews(ctx context.Context) error {
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case id := <-b.hints:
			b.readNews(ctx, b.drainHints(id))
		case <-poll.C:
			b.readNews(ctx, b.waiters.ids())
		}
	}
}

func (b *Broker) drainHints(first telematics.CommandID) []telematics.CommandID {
	ids := []telematics.CommandID{first}
	for {
		select {
		case id := <-b.hints:
			ids = append(ids, id)
		default:
			return ids
		}
	}
}

func (b *Broker) readNews(ctx context.Context, ids []telematics.CommandID) {
	if len(ids) == 0 {
		return
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	news, err := b.Commands.News(ctx, ids)
	if err != nil {
		b.Logger.Warn("record not readable; waiting callers are told later", "waiting", len(ids), "err", err)
		return
	}
	for _, c := range news {
		if w := b.waiters.find(c.ID); w != nil {
			w.tell(c)
		}
	}
}
