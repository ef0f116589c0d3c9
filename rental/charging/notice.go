package charging

import (
	"context"
	"errors"
	"strings"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// handle handles a notice. If that fails, the notice becomes due again after a back-off.
func (c *Collector) handle(ctx context.Context, n rental.Notice) {
	c.metrics.notices.Inc()
	var again time.Time
	if err := c.follow(ctx, n); err != nil {
		c.metrics.handled.failed.Inc()
		c.Logger.Warn(
			"notice of the payment processor not handled, retrying", "notice", n.ID, "type", n.Type, "object", n.Object,
			"err", err,
		)
		again = c.Now().Add(backoffAfter(n.Attempts))
	}
	if err := c.Notices.Handled(ctx, n.ID, again); err != nil {
		c.Logger.Warn("notice of the payment processor not released, retried after its lease", "notice", n.ID, "err", err)
	}
}

func (c *Collector) follow(ctx context.Context, n rental.Notice) error {
	switch n.Kind {
	case rental.AboutIntent, rental.AboutRefund:
		return c.wake(ctx, n)
	case rental.AboutDispute:
		return c.dispute(ctx, n)
	case rental.AboutCard:
		c.metrics.handled.cardChecked.Inc()
		return c.refreshCard(ctx, n.Object)
	default:
		c.metrics.handled.unknownObject.Inc()
		return nil
	}
}

// wake makes the charge of a notice due for a query: the notice itself may be outdated.
func (c *Collector) wake(ctx context.Context, n rental.Notice) error {
	state, woken, err := c.Ledger.WakeCharge(ctx, n.Object)
	switch {
	case err != nil:
		return err
	case state == "":
		c.metrics.handled.unknownObject.Inc()
	case !woken:
		c.metrics.handled.chargeFinal.Inc()
		c.Logger.Debug("notice of a settled charge ignored",
			"notice", n.ID, "type", n.Type, "object", n.Object, "state", string(state))
	default:
		c.metrics.handled.chargeChecked.Inc()
		wakeUp(c.charges)
	}
	return nil
}

// dispute records that the owner of a card disputes a payment: only people can answer. It records
// the status of the dispute, too: won, lost.
func (c *Collector) dispute(ctx context.Context, n rental.Notice) error {
	notice, status, _ := strings.Cut(n.Type, " ")
	known, err := c.Ledger.Dispute(ctx, n.Object, telematics.Activity{
		At: c.Now(), Actor: rental.System(), Action: rental.ChargeDispute, Outcome: telematics.Executed,
		Details: map[string]any{"notice": notice, "status": status, "notice_id": n.ID},
	})
	switch {
	case err != nil:
		return err
	case !known:
		c.metrics.handled.unknownObject.Inc()
	default:
		c.metrics.handled.disputed.Inc()
		c.Logger.Warn("payment is disputed, or the dispute was decided: look in the processor's dashboard",
			"notice", n.ID, "type", n.Type, "intent", n.Object)
	}
	return nil
}

// refreshCard stores the processor's changes of a card. It removes a card without a customer, which
// cannot pay any more.
func (c *Collector) refreshCard(ctx context.Context, token string) error {
	bounded, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	card, customer, err := c.Processor.Card(bounded, token)
	var failure *rental.ProcessorError
	switch {
	case err == nil && customer != "":
		return c.Cards.RefreshCard(ctx, card)
	case errors.As(err, &failure) && failure.Kind == rental.Refused: // the object is no card
		c.metrics.handled.unknownObject.Inc()
		return nil
	case err == nil, failure != nil && failure.Kind == rental.NotKnown:
		return c.Cards.DropCard(ctx, token, telematics.Activity{
			At: c.Now(), Actor: rental.System(), Action: rental.MethodDropped, Outcome: telematics.Executed,
		})
	default:
		return err
	}
}
