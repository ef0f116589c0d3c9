package charging_test

import (
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
)

// extend adds the charge of an extension by four hours.
func (w *world) extend(client rental.ClientID) rental.Charge {
	return w.ledger.Add(client, rental.Charge{
		Booking: 1, Kind: rental.ExtensionCharge, Number: 1, State: rental.Pending, Currency: "EUR", Amount: amount,
		Added: 4 * time.Hour, NextAttempt: time.Now(),
	})
}

func TestExtension_NotPaidInTimeIsTakenBack(t *testing.T) {
	for what, c := range map[string]struct {
		cards   []sandbox.Behaviour
		refused rental.ChargeState
		code    string
	}{
		"declined":           {[]sandbox.Behaviour{broke}, rental.Declined, "insufficient_funds"},
		"stolen card":        {[]sandbox.Behaviour{stolen}, rental.Failed, "stolen_card"},
		"no card":            {nil, rental.Declined, rental.CodeNoCard},
		"owner must confirm": {[]sandbox.Behaviour{asksFor}, rental.RequiresAction, "authentication_required"},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.every = time.Minute
			client, _ := w.client(c.cards...)
			charge := w.extend(client)
			w.collect(nil)
			w.after(rental.DefaultPaymentWait - time.Minute)
			w.wantState(charge, c.refused)
			w.after(2 * time.Minute)
			w.wantState(charge, rental.Released)
			if is, e := w.is(charge), w.bank.Of(charge.ID); is.DeclineCode != c.code || is.Settled != 0 || e.Taken != 0 {
				t.Errorf("%s: %+v, the bank has %+v; want nothing taken, and why", what, is, e)
			}
			// Another card later pays for nothing.
			w.ledger.SetDefault(client, w.card(client, pays))
			w.after(24 * time.Hour)
			if e := w.bank.Of(charge.ID); e.Taken != 0 || len(w.lines(rental.ExtensionCharge)) != 2 {
				t.Errorf("%s: the bank has %+v, entries %v", what, e, w.lines(rental.ExtensionCharge))
			}
		})
	}
}

// The end of a rental withdraws a payment: it is cancelled at the processor, also where another
// card would pay by then.
func TestPayment_ThatIsWithdrawnTakesNothing(t *testing.T) {
	for what, card := range map[string]sandbox.Behaviour{"declined": broke, "stolen card": stolen, "owner must confirm": asksFor} {
		inWorld(t, func(t *testing.T, w *world) {
			client, _ := w.client(card)
			charge := w.add(client, rental.StartCharge)
			w.collect(nil)
			w.after(time.Minute)
			w.ledger.Amend(charge.ID, rental.Release, 0)
			w.ledger.SetDefault(client, w.card(client, pays))
			w.after(time.Hour)
			w.wantState(charge, rental.Released)
			if e := w.bank.Of(charge.ID); e.Taken != 0 {
				t.Errorf("%s: the bank has %+v, want nothing taken", what, e)
			}
		})
	}
}

func TestExtension_MendedInTimeIsPaid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(broke)
		charge := w.extend(client)
		w.collect(nil)
		w.after(rental.DefaultPaymentWait - time.Minute)
		w.ledger.SetDefault(client, w.card(client, pays))
		w.after(time.Hour)
		w.wantState(charge, rental.Paid)
		w.wantOnce(charge)
	})
}

// The processor gives no answer when the time is over: nothing is given up whose result is unknown.
// The time to mend a payment begins when it is refused, not when it is requested.
func TestExtension_WhosePaymentIsNotKnownIsKept(t *testing.T) {
	for what, c := range map[string]struct {
		card        sandbox.Behaviour
		then, atEnd rental.ChargeState
	}{
		"paid":    {pays, rental.Paid, rental.Paid},
		"refused": {stolen, rental.Failed, rental.Released},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			client, _ := w.client(c.card)
			w.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
				if c.Method == "Confirm" || c.Method == "Intent" {
					return rentaltest.Fault{Kind: sandbox.HangBefore}
				}
				return rentaltest.Fault{}
			})
			charge := w.extend(client)
			w.collect(nil)
			w.after(2 * rental.DefaultPaymentWait)
			w.wantState(charge, rental.Unknown)
			w.bank.FailWith(nil)
			w.after(5 * time.Minute) // longer than the pause between two queries
			w.wantState(charge, c.then)
			w.after(time.Hour)
			w.wantState(charge, c.atEnd)
			if e := w.bank.Of(charge.ID); c.atEnd == rental.Paid {
				w.wantOnce(charge)
			} else if e.Taken != 0 {
				t.Errorf("%s: the bank has %+v, want nothing taken", what, e)
			}
		})
	}
}

// Each card that the client chooses has the whole time, whatever became of the one before.
func TestExtension_EachCardHasTheWholeTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(broke)
		charge := w.extend(client)
		w.collect(nil)
		w.after(9 * time.Minute)
		w.ledger.SetDefault(client, w.card(client, stolen))
		w.after(6 * time.Minute)
		w.ledger.SetDefault(client, w.card(client, asksFor))
		w.after(9 * time.Minute)
		w.wantState(charge, rental.RequiresAction)
		w.after(2 * time.Minute)
		w.wantState(charge, rental.Released)
		if e := w.bank.Of(charge.ID); e.Taken != 0 {
			t.Errorf("the bank has %+v", e)
		}
	})
}
