package broker

import (
	"context"
	"time"
)

// agedEvery is between two looks for vehicles that have fallen silent: what is told of it
// is at most so late.
const agedEvery = 5 * time.Second

// watchContacts tells of vehicles whose connectivity has changed with time alone, until the
// context ends.
func (b *Broker) watchContacts(ctx context.Context) error {
	return each(ctx, agedEvery, func() { b.tellAged(ctx) })
}

func (b *Broker) tellAged(ctx context.Context) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	aged, err := b.Contacts.Aged(ctx)
	if err != nil && ctx.Err() == nil {
		b.Logger.Warn("vehicles that have fallen silent not readable", "err", err)
	}
	b.events.changed(aged)
}
