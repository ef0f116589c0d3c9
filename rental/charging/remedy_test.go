package charging_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/telematics"
)

// failing is a bank whose calls fail in one way, from one step on. Nothing happens there.
type failing struct {
	*rentaltest.Bank
	step string
	err  error
}

func (f failing) CreateIntent(ctx context.Context, key string, r rental.IntentRequest) (rental.Intent, error) {
	if f.step == "create" {
		return rental.Intent{}, f.err
	}
	return f.Bank.CreateIntent(ctx, key, r)
}

func (f failing) Confirm(ctx context.Context, key, intent, token string) (rental.Intent, error) {
	if f.step == "confirm" {
		return rental.Intent{}, f.err
	}
	return f.Bank.Confirm(ctx, key, intent, token)
}

func (f failing) Capture(ctx context.Context, key, intent string, m rental.Minor, c rental.Currency) (rental.Intent, error) {
	if f.step == "capture" {
		return rental.Intent{}, f.err
	}
	return f.Bank.Capture(ctx, key, intent, m, c)
}

func (f failing) Cancel(ctx context.Context, key, intent string) (rental.Intent, error) {
	if f.step == "cancel" {
		return rental.Intent{}, f.err
	}
	return f.Bank.Cancel(ctx, key, intent)
}

// active is a booking whose start was long ago, so that only what is owed keeps it locked.
func active(c rental.Charge) rental.BookingDetails {
	now := time.Now()
	return rental.BookingDetails{
		Booking: rental.Booking{State: rental.Active, ActualStart: now.Add(-time.Hour), End: now.Add(time.Hour)},
		Terms:   rental.Terms{PaymentWait: rental.DefaultPaymentWait}, Charges: []rental.Charge{c},
	}
}

// Whatever fails, and at whichever step: the client cannot unlock only if the client can mend it.
func TestFailures_OnlyWhatTheClientCanMendLocksTheVehicle(t *testing.T) {
	kinds := []rental.ChargeKind{rental.StartCharge, rental.DepositCharge, rental.ExtensionCharge}
	for kind, remedy := range rental.Failures {
		for _, step := range []string{"create", "confirm", "capture", "cancel"} {
			for _, charged := range kinds {
				if charged != rental.DepositCharge && (step == "capture" || step == "cancel") {
					continue // only a deposit has this step
				}
				inWorld(t, func(t *testing.T, w *world) {
					w.every = 5 * time.Minute
					failure := &rental.ProcessorError{Kind: kind, Cause: errors.New("ordered")}
					if kind == rental.CardRefused {
						if step != "confirm" {
							return // no other step uses a card
						}
						failure.Decline = &rental.Decline{Code: "insufficient_funds"}
					}
					client, _ := w.client(pays)
					charge := w.add(client, charged)
					w.collect(func(c *charging.Config) { c.Processor = failing{w.bank, step, failure} })
					w.after(time.Minute)
					switch step {
					case "capture":
						w.ledger.Amend(charge.ID, rental.Capture, 30)
					case "cancel":
						w.ledger.Amend(charge.ID, rental.Release, 0)
					}
					w.after(2 * time.Hour)
					is := w.is(charge)
					locked := active(is).Control(time.Now(), telematics.Unlock) != nil
					if locked != (remedy == rental.ByClient) {
						t.Errorf(
							"%s fails with %s, which the %s mends: the %s charge is %s (%s), unlock is refused: %v",
							step, kind, remedy, charged, is.State, is.DeclineCode, locked,
						)
					}
				})
			}
		}
	}
}

func TestCharge_TooSmallForTheProcessorIsWaived(t *testing.T) {
	for _, kind := range []rental.ChargeKind{rental.StartCharge, rental.DepositCharge, rental.ExtensionCharge, rental.FeeCharge} {
		for _, step := range []string{"create", "confirm"} {
			inWorld(t, func(t *testing.T, w *world) {
				w.every = time.Minute
				client, _ := w.client(pays)
				charge := w.add(client, kind)
				small := &rental.ProcessorError{Kind: rental.TooSmall, Cause: errors.New("at least 50")}
				c := w.collect(func(c *charging.Config) { c.Processor = failing{w.bank, step, small} })
				w.after(time.Minute)
				w.wantState(charge, rental.Waived)
				if is, e := w.is(charge),
					w.bank.Of(charge.ID); is.Settled != 0 || is.DeclineCode != rental.CodeTooSmall || e.Payments != 0 {
					t.Errorf("%s: %+v, the bank has %+v", kind, is, e)
				}
				taken := metric(t, c, "charge_attempts_total")
				w.ledger.SetDefault(client, w.card(client, pays))
				w.after(24 * time.Hour)
				if more := metric(t, c, "charge_attempts_total") - taken; more != 0 || len(w.lines(kind)) != 1 {
					t.Errorf("%s: %d more attempts, audit log %v", kind, more, w.lines(kind))
				}
			})
		}
	}
}

func TestDeposit_CaptureTooSmallForTheProcessorReleasesAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		small := &rental.ProcessorError{Kind: rental.TooSmall, Cause: errors.New("at least 50")}
		w.collect(func(c *charging.Config) { c.Processor = failing{w.bank, "capture", small} })
		w.after(time.Minute)
		w.wantState(deposit, rental.Authorized)
		w.ledger.Amend(deposit.ID, rental.Capture, 29)
		w.after(time.Minute)
		w.wantState(deposit, rental.Released)
		w.wantNothingHeld(deposit)
		if is := w.is(deposit); is.DeclineCode != rental.CodeTooSmall {
			t.Errorf("%+v, want the reason", is)
		}
	})
}
