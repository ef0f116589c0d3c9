package broker

import (
	"context"

	"motorpool/telematics"
)

// recordRefusal adds the line of an order that never became a command on the air [LAW-9].
func (b *Broker) recordRefusal(ctx context.Context, order *telematics.Order, c *telematics.Command, refusal *telematics.Error) {
	line := b.orderLine(order, c)
	line.Code = refusal.Code
	if refusal.Code == telematics.TelematicsUnavailable { // whose vehicle it is was not confirmed
		line.Agency = order.Actor.Agency
	}
	if refusal.Code == telematics.IdempotencyInProgress { // the first request will say
		line.Command = refusal.Command
	} else {
		line.Outcome, line.Latency = telematics.NotExecuted, b.now().Sub(c.Requested)
	}
	b.Note(ctx, line)
}

// recordReplay adds the line of an order that was carried out under its key before: it
// says nothing new of the vehicle.
func (b *Broker) recordReplay(ctx context.Context, order *telematics.Order, earlier *telematics.Command) {
	line := b.orderLine(order, earlier)
	line.Code, line.Command = telematics.IdempotencyReplayed, earlier.ID
	b.Note(ctx, line)
}

// orderLine tells who ordered what, and when, however wrong the clock is. A repetition is answered at once, and has no more to add.
func (b *Broker) orderLine(order *telematics.Order, c *telematics.Command) telematics.Activity {
	return telematics.Activity{
		At: b.recordTime(), Actor: order.Actor, Agency: c.Agency, Vehicle: order.Vehicle, Booking: order.Booking,
		Action: telematics.CommandActivity(order.Action), Attention: order.Attention,
		RequestID: order.RequestID,
	}
}
