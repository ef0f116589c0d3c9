package broker

import (
	"context"

	"motorpool/telematics"
)

// repeated finds what an earlier order under the same idempotency key has made. Where
// there was none, the receipt is the command's own.
func (b *Broker) repeated(ctx context.Context, c *telematics.Command) (telematics.Receipt, *telematics.Error) {
	key, own := c.Key, telematics.Receipt{Command: c}
	if key == nil {
		return own, nil
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	made, found, err := b.Commands.Made(ctx, *key)
	switch {
	case err != nil:
		return own, telematics.Unavailable("Postgres", err)
	case !found:
		return own, nil
	case made.Fingerprint != key.Fingerprint:
		return own, telematics.KeyMismatch()
	}
	return telematics.Receipt{Command: &made.Command, Replayed: true}, nil
}
