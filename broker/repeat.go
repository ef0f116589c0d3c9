package broker

import (
	"context"

	"motorpool/telematics"
)

// repeated finds what an earlier order under the same idempotency key has made, by a lookup of the key or, for nil, by one of now. Where
// there was none, the receipt is the command's own: a claim still finds a key that was used since.
func (b *Broker) repeated(ctx context.Context, c *telematics.Command, lookup *telematics.KeyLookup) (telematics.Receipt, *telematics.Error) {
	key, own := c.Key, telematics.Receipt{Command: c}
	if key == nil {
		return own, nil
	}
	if lookup == nil {
		ctx, cancel := b.step(ctx)
		defer cancel()
		made, found, err := b.Commands.Made(ctx, *key)
		if err != nil {
			return own, telematics.Unavailable("Postgres", err)
		}
		lookup = &telematics.KeyLookup{Made: made, Found: found}
	}
	switch {
	case !lookup.Found:
		return own, nil
	case lookup.Made.Fingerprint != key.Fingerprint:
		return own, telematics.KeyMismatch()
	}
	command := lookup.Made.Command
	return telematics.Receipt{Command: &command, Replayed: true}, nil
}
