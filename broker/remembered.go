package broker

import (
	"context"
	"runtime/trace"
	"time"

	"motorpool/telematics"
)

// acceptRemembered is accept by what is remembered of the vehicle, which need not be read then: the claim itself checks that it
// is still true. What is remembered only ever lets a command pass. It reports false where nothing was decided, and nothing
// written: nothing is remembered, it is not true any more, it speaks against the order, or the order repeats another.
// Whoever is refused, or answered from an earlier order, goes by the record as it is now.
//
// An action that the vehicle's state can forbid needs that state, which is not remembered.
func (b *Broker) acceptRemembered(ctx context.Context, order *telematics.Order, now time.Time) (telematics.Receipt, *telematics.Error, bool) {
	if order.Action.Conditional() {
		return telematics.Receipt{}, nil, false
	}
	twin, ok := b.Vehicles.Remembered(order.Vehicle)
	if !ok || twin.Version == 0 || !order.Actor.Sees(twin.AgencyID) {
		return telematics.Receipt{}, nil, false
	}
	c := newCommand(order, b.Instance, now)
	addressTo(c, &twin)
	c.Version = twin.Version
	receipt, refusal := b.weighRemembered(ctx, c, &twin)
	switch {
	case refusal != nil && refusal.Code == telematics.TelematicsUnavailable: // who cannot be asked now is not asked once more
		addressTo(c, &telematics.Twin{Vehicle: telematics.Vehicle{AgencyID: order.Actor.Agency}})
		return telematics.Receipt{Command: c}, refusal, true
	case refusal != nil || receipt.Replayed:
		return telematics.Receipt{}, nil, false
	}
	receipt, refusal, stale := b.claim(ctx, c)
	switch {
	case stale:
		b.Vehicles.Forget(c.Vehicle)
		return telematics.Receipt{}, nil, false
	case refusal == nil && !receipt.Replayed:
		b.Vehicles.Confirm(twin)
	case refusal != nil && refusal.Code == telematics.TelematicsUnavailable: // and nobody has said that it is true
		b.Vehicles.Forget(c.Vehicle) // the next one fails at reading, which owes nothing
		addressTo(c, &telematics.Twin{Vehicle: telematics.Vehicle{AgencyID: order.Actor.Agency}})
	}
	return receipt, refusal, true
}

func (b *Broker) weighRemembered(ctx context.Context, c *telematics.Command, twin *telematics.Twin) (telematics.Receipt, *telematics.Error) {
	defer trace.StartRegion(ctx, telematics.StepLookUp).End()
	return b.weigh(ctx, c, twin)
}
