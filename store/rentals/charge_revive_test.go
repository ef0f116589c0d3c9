package rentals

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// owing is a client with an active booking that has unpaid charges.
type owing struct {
	cardholder
	booking rental.BookingID
	number  int
}

func newOwing(t *testing.T, p *fixture, vehicle telematics.VehicleID) *owing {
	c := newCardholder(t, p)
	return &owing{cardholder: c, booking: bookWith(t, p, vehicle, c.client.ID, 0, rental.Active)}
}

// newOwingAlone returns the only client of a database.
func newOwingAlone(t *testing.T) *owing {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.Vehicles(t, p.DB)()
	return newOwing(t, p, vehicle)
}

// fee inserts a fee for which a card was tried.
func (o *owing) fee(set string, tried rental.MethodID) uuid.UUID {
	o.number++
	return owe(o.tb, o.fixture, o.booking, rental.FeeCharge, o.number, fmt.Sprintf("%s, payment_method_id = nullif(%d, 0)", set, tried))
}

// wantsDue checks whether a charge is due now and with which card; zero: it is not due.
func (o *owing) wantsDue(what string, id uuid.UUID, card rental.MethodID) {
	o.tb.Helper()
	var row struct {
		Due      bool   `db:"due"`
		Woken    bool   `db:"woken"`
		Method   *int64 `db:"payment_method_id"`
		LastFour string `db:"last_four"`
		Declines int    `db:"declines"`
		Hard     bool   `db:"hard"`
	}
	err := o.Pool.Get(&row, `
		select next_attempt_at is not null and next_attempt_at <= clock_timestamp() as due, woken_at is not null as woken,
			payment_method_id, last_four, declines, hard
		from charges where id = $1`, id)
	require.NoError(o.tb, err)
	if row.Due != (card != 0) || row.Woken != row.Due {
		o.tb.Errorf("%s: due %v, woken %v; want both %v", what, row.Due, row.Woken, card != 0)
	}
	if card != 0 && (pg.Deref(row.Method) != int64(card) || row.LastFour != "4242" || row.Declines != 0 || row.Hard) {
		o.tb.Errorf("%s: charge %+v, want it due with card %d", what, row, card)
	}
}

const declined = `state = 'declined', declines = 2, decline_code = 'insufficient_funds', next_attempt_at = now() + interval '1 day'`

func TestDefault_NewOneIsTriedImmediatelyForUnpaidCharges(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	for name, change := range map[string]func(o *owing, second rental.Method) rental.MethodID{
		"set": func(o *owing, second rental.Method) rental.MethodID {
			require.NoError(t, o.makeDefault(second.ID))
			return second.ID
		},
		"added": func(o *owing, _ rental.Method) rental.MethodID { return o.add(true).ID },
		"added again": func(o *owing, second rental.Method) rental.MethodID {
			_, err := o.put(second.Card, true)
			require.NoError(t, err)
			return second.ID
		},
		"next, after the first was dropped": func(o *owing, second rental.Method) rental.MethodID {
			methods, err := o.Methods(t.Context(), o.client.ID)
			require.NoError(t, err)
			require.NoError(t, o.DropCard(t.Context(), methods[1].Token, o.line(rental.MethodDropped)))
			return second.ID
		},
	} {
		t.Run(name, func(t *testing.T) {
			vehicle, _ := add()
			o := newOwing(t, p, vehicle)
			first, second := o.add(false), o.add(false)
			due := map[string]uuid.UUID{
				"declined":                   o.fee(declined, first.ID),
				"failed":                     o.fee(`state = 'failed'`, first.ID),
				"waiting for confirmation":   o.fee(`state = 'requires_action'`, first.ID),
				"barred from the first card": o.fee(`state = 'failed', hard = true`, first.ID),
				"whose card was removed":     o.fee(`state = 'failed'`, 0),
				"leased by a worker": o.fee(
					declined+`, lease = gen_random_uuid(), lease_until = now() + interval '1 minute'`, first.ID,
				),
				"declined deposit": owe(
					t, p, o.booking, rental.DepositCharge, 1,
					fmt.Sprintf(`state = 'declined', payment_method_id = %d`, first.ID),
				),
			}
			stays := map[string]uuid.UUID{
				"paid":    o.fee(`state = 'paid'`, first.ID),
				"unknown": o.fee(`state = 'unknown'`, first.ID),
				"pending": o.fee(`state = 'pending'`, first.ID),
				// The operator has mended it, and charged it as a fee.
				"refused": o.fee(`state = 'failed', decline_code = 'refused', created_at = now() - interval '1 day'`, 0),
				"refund":  owe(t, p, o.booking, rental.RefundCharge, 1, fmt.Sprintf(`state = 'failed', payment_method_id = %d`, first.ID)),
			}
			other, _ := add()
			another := newOwing(t, p, other)
			theirs := another.fee(declined, another.add(false).ID)
			next := change(o, second)
			for what, id := range due {
				o.wantsDue(what, id, next)
			}
			for what, id := range stays {
				o.wantsDue(what, id, 0)
			}
			o.wantsDue("charge of another client", theirs, 0)
		})
	}
}

func TestDefault_DepositToBeReleasedIsNotRetried(t *testing.T) {
	o := newOwingAlone(t)
	first, second := o.add(false), o.add(false)
	deposit := owe(
		t, o.fixture, o.booking, rental.DepositCharge, 1,
		fmt.Sprintf(`state = 'declined', goal = 'release', payment_method_id = %d`, first.ID),
	)
	require.NoError(t, o.makeDefault(second.ID))
	o.wantsDue("deposit to be released", deposit, 0)
}

func TestDefault_OtherCardCausesNoRetry(t *testing.T) {
	o := newOwingAlone(t)
	first := o.add(false)
	fee := o.fee(declined, first.ID)
	o.add(false)
	o.wantsDue("another card was added", fee, 0)
	require.NoError(t, o.makeDefault(first.ID))
	o.wantsDue("the declined card became the default again", fee, 0)
}

// A client may have no other card, and would owe for ever.
func TestDefault_TheSameCardIsTriedAgainOnceNoAttemptIsDue(t *testing.T) {
	o := newOwingAlone(t)
	only := o.add(false)
	failed := `state = 'failed', declines = 5, decline_code = 'insufficient_funds'`
	soft, hard := o.fee(failed, only.ID), o.fee(`state = 'failed', hard = true`, only.ID)
	require.NoError(t, o.makeDefault(only.ID))
	o.wantsDue("failed", soft, only.ID)
	o.wantsDue("forbidden", hard, 0)
	again := o.fee(failed, only.ID)
	_, err := o.put(only.Card, true)
	require.NoError(t, err)
	o.wantsDue("failed, and the card is added again", again, only.ID)
}

func TestDefault_RenewedCardIsRetriedUnlessBarred(t *testing.T) {
	o := newOwingAlone(t)
	first := o.add(false)
	soft, hard := o.fee(declined, first.ID), o.fee(`state = 'failed', hard = true`, first.ID)
	renewed := first.Card
	renewed.Token, renewed.ExpYear = rentaltest.NewCard().Token, 2039
	_, err := o.put(renewed, false)
	require.NoError(t, err)
	o.wantsDue("declined", soft, first.ID)
	o.wantsDue("forbidden", hard, 0)
}

// The bank refused the card permanently for this charge. Neither another card in between nor a new
// id of the same card lifts that.
func TestDefault_BarredCardIsNeverRetried(t *testing.T) {
	o := newOwingAlone(t)
	stolen, second := o.add(false), o.add(false)
	fee := o.fee(`state = 'failed', hard = true`, stolen.ID)
	decline := func() {
		t.Helper()
		storetest.Exec(t, o.Pool, `update charges set state = 'declined', declines = 1, next_attempt_at = now() + interval '1 day',
			woken_at = null where id = $1`, fee)
	}
	require.NoError(t, o.makeDefault(second.ID))
	o.wantsDue("with another card", fee, second.ID)
	decline()
	require.NoError(t, o.makeDefault(stolen.ID))
	o.wantsDue("with the barred card", fee, 0)
	require.NoError(t, o.makeDefault(second.ID))
	require.NoError(t, o.remove(stolen.ID))
	again := stolen.Card
	again.Token = rentaltest.NewCard().Token
	if added, err := o.put(again, true); err != nil || added.Existed {
		t.Fatalf("added %+v, %v; want a new method", added, err)
	}
	o.wantsDue("with the barred card as a new method", fee, 0)
	third := o.add(true)
	o.wantsDue("with a third card", fee, third.ID)
}

func TestDefault_BarredCardStaysBarredAfterItsRemoval(t *testing.T) {
	o := newOwingAlone(t)
	first, stolen := o.add(false), o.add(false)
	fee := o.fee(`state = 'failed', hard = true`, stolen.ID) // the booking named this card
	require.NoError(t, o.remove(stolen.ID))
	again := stolen.Card
	again.Token = rentaltest.NewCard().Token
	_, err := o.put(again, true)
	require.NoError(t, err)
	o.wantsDue("with the barred card as a new method", fee, 0)
	require.NoError(t, o.makeDefault(first.ID))
	o.wantsDue("with another card", fee, first.ID)
}

// A worker records that a charge is paid while another card is chosen for it.
func TestDefault_WaitsForTheWorkerOfACharge(t *testing.T) {
	o := newOwingAlone(t)
	first, second := o.add(false), o.add(false)
	paid, owed := o.fee(declined, first.ID), o.fee(declined, first.ID)
	worker := storetest.Begin(t, o.Pool)
	storetest.Exec(t, worker, `update charges set state = 'paid', next_attempt_at = null where id = $1`, paid)
	done := make(chan error, 1)
	go func() { done <- o.makeDefault(second.ID) }()
	storetest.WaitForLock(t, o.DB)
	require.NoError(t, worker.Commit())
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(storetest.Patience):
		t.Fatal("the default was not set")
	}
	o.wantsDue("paid in the meantime", paid, 0)
	o.wantsDue("still unpaid", owed, second.ID)
}
