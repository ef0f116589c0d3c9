package rentals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

var _ rental.Cards = (*fixture)(nil)

func TestPostgres_KeepsTheContractOfCards(t *testing.T) {
	address := storetest.NewDatabase(t)
	here, there := open(t, address), open(t, address)
	add := storetest.Vehicles(t, here.DB)
	add()
	rentaltest.CardsContract(t, func(t *testing.T) rentaltest.CardRecord {
		return rentaltest.CardRecord{
			Here: here, There: there,
			Use: func(t *testing.T, m rental.Method) {
				vehicle, _ := add()
				bookWith(t, here, vehicle, m.Client, m.ID, rental.Active)
			},
			Lines: func(t *testing.T) []telematics.Activity {
				lines, err := here.Activities(t.Context(), telematics.ActivityQuery{})
				require.NoError(t, err)
				slices.Reverse(lines)
				return slices.DeleteFunc(lines, func(a telematics.Activity) bool { return !strings.HasPrefix(a.Action, "payment_method.") })
			},
		}
	})
}

// bookWith inserts a booking of a vehicle in a state, to be paid with a method; zero: with the
// default.
func bookWith(
	tb testing.TB, p *fixture, vehicle telematics.VehicleID, client rental.ClientID, method rental.MethodID,
	state rental.BookingState,
) rental.BookingID {
	tb.Helper()
	var id int64
	err := p.Pool.Get(&id, `
		with station as (
			insert into stations (id, agency_id, name, address, latitude, longitude) values (1, 1, 'Station', 'Street 1', 48, 11)
			on conflict (id) do update set name = excluded.name returning id
		)
		insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at, end_at,
			started_at, ended_at, currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, payment_method_id, created_at)
		select $1, $2, 1, $3, $4, id, id, now(), now() + interval '8 hours', case when $2 in ('active', 'completed') then now() end,
			case when $2 = 'completed' then now() end, 'EUR', 1500, 100000, 800, 12000, 1200, 20000, nullif($5::bigint, 0), now()
		from station returning id`,
		uuid.NewString(), state, client, vehicle, method)
	require.NoError(tb, err)
	return rental.BookingID(id)
}

// owe inserts a charge, with a change of its columns such as state = 'declined'.
func owe(tb testing.TB, p *fixture, booking rental.BookingID, kind rental.ChargeKind, number int, set string) uuid.UUID {
	tb.Helper()
	id := uuid.New()
	_, err := p.Pool.Exec(`
		insert into charges (id, booking_id, kind, number, state, currency, amount, goal, refunds_charge_id, created_at)
		values ($1, $2, $3, $4, 'pending', 'EUR', 13200, case when $3 = 'deposit' then 'hold' end,
			case when $3 = 'refund' then $1::uuid end, now())`, id, booking, kind, number)
	if err == nil {
		_, err = p.Pool.Exec(`update charges set `+set+` where id = $1`, id)
	}
	require.NoError(tb, err)
	return id
}

// cardholder is a client with cards.
type cardholder struct {
	*fixture
	tb     testing.TB
	client rental.Client
}

func newCardholder(tb testing.TB, p *fixture) cardholder {
	tb.Helper()
	client, err := p.Client(context.Background(), 1, "client-"+uuid.NewString())
	require.NoError(tb, err)
	return cardholder{p, tb, client}
}

func (c cardholder) line(activity string) telematics.Activity {
	return telematics.Activity{At: time.Now(), Action: activity, Agency: 1,
		Actor: telematics.Actor{Subject: c.client.Subject, Role: telematics.Client, Agency: 1}}
}

func (c cardholder) put(card rental.Card, makeDefault bool) (rental.Added, error) {
	return c.AddMethod(context.Background(), rental.Addition{
		Client: c.client.ID, Card: card, Default: makeDefault, Activity: c.line(rental.MethodAdd), Now: time.Now(),
	})
}

func (c cardholder) add(makeDefault bool) rental.Method {
	c.tb.Helper()
	added, err := c.put(rentaltest.NewCard(), makeDefault)
	require.NoError(c.tb, err)
	return added.Method
}

func (c cardholder) makeDefault(id rental.MethodID) error {
	_, _, err := c.SetDefault(context.Background(), c.client.ID, id, c.line(rental.MethodDefault), nil)
	return err
}

func (c cardholder) remove(id rental.MethodID) error {
	_, err := c.RemoveMethod(context.Background(), c.client.ID, id, c.line(rental.MethodRemove))
	return err
}

// oneDefault returns what is wrong with the client's default, as one snapshot of the database shows
// it; empty: nothing.
func oneDefault(p *fixture, client rental.ClientID) (string, error) {
	var seen struct {
		Default *int64 `db:"default_payment_method_id"`
		Methods int    `db:"methods"`
		Named   int    `db:"named"`
	}
	err := p.Pool.Get(&seen, `
		select default_payment_method_id, (select count(*) from payment_methods m where m.client_id = c.id) as methods,
			(select count(*) from payment_methods m where m.client_id = c.id and m.id = c.default_payment_method_id) as named
		from clients c where id = $1`, client)
	if err == nil && (seen.Methods > 0 && seen.Named != 1 || seen.Methods == 0 && seen.Default != nil || seen.Methods > rental.MaxMethods) {
		return fmt.Sprintf("%d methods, default %d, which is %d of them", seen.Methods, pg.Deref(seen.Default), seen.Named), nil
	}
	return "", err
}

func asRefusal(err error, refusal **telematics.Error) bool {
	return errors.As(err, refusal) && (*refusal).Code != telematics.Internal
}

func TestRemoveMethod_InUseWhileAPaymentNeedsTheCard(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	add()
	for name, test := range map[string]struct {
		state    rental.BookingState
		named    bool // the booking names the card
		kind     rental.ChargeKind
		set      string // columns of a charge; empty: no charge
		cardless bool   // the charge does not name the card
		used     bool
	}{
		"named by an active booking":   {state: rental.Active, named: true, used: true},
		"named by an upcoming booking": {state: rental.Upcoming, named: true},
		"named by a completed booking": {state: rental.Completed, named: true},
		"pending charge": {
			state: rental.Active, kind: rental.StartCharge, set: `state = 'pending'`, used: true,
		},
		"charge with an unknown outcome": {
			state: rental.Active, kind: rental.StartCharge, set: `state = 'unknown'`, used: true,
		},
		"declined charge to be retried": {
			state: rental.Active, kind: rental.FeeCharge, set: `state = 'declined'`, used: true,
		},
		"charge that the owner must confirm": {
			state: rental.Active, kind: rental.FeeCharge, set: `state = 'requires_action'`, used: true,
		},
		"start that the owner must confirm": {
			state: rental.Upcoming, kind: rental.StartCharge, set: `state = 'requires_action'`, used: true,
		},
		"held deposit": {
			state: rental.Active, kind: rental.DepositCharge, set: `state = 'authorized'`, used: true,
		},
		"released deposit": {state: rental.Active, kind: rental.DepositCharge, set: `state = 'released'`},
		"paid charge":      {state: rental.Active, kind: rental.StartCharge, set: `state = 'paid'`},
		"failed charge":    {state: rental.Active, kind: rental.StartCharge, set: `state = 'failed'`},
		"declined charge, card barred": {
			state: rental.Active, kind: rental.StartCharge, set: `state = 'declined', hard = true`,
		},
		"refund":                     {state: rental.Active, kind: rental.RefundCharge, set: `state = 'pending'`},
		"fee of a completed booking": {state: rental.Completed, kind: rental.FeeCharge, set: `state = 'pending'`},
		"leased fee of a completed booking": {
			state: rental.Completed, kind: rental.FeeCharge,
			set: `state = 'pending', lease = gen_random_uuid(), lease_until = now() + interval '1 minute'`, used: true,
		},
		"leased fee without a card": {
			state: rental.Completed, kind: rental.FeeCharge, set: `state = 'pending', lease_until = now() + interval '1 minute'`,
			cardless: true, used: true,
		},
		"leased fee without a card, booking names the card": {
			state: rental.Completed, named: true, kind: rental.FeeCharge,
			set: `state = 'pending', lease_until = now() + interval '1 minute'`, cardless: true, used: true,
		},
		"fee without a card": {
			state: rental.Active, kind: rental.FeeCharge, set: `state = 'pending'`, cardless: true,
		},
		"fee with an expired lease": {
			state: rental.Completed, kind: rental.FeeCharge,
			set: `state = 'pending', lease = gen_random_uuid(), lease_until = now() - interval '1 minute'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCardholder(t, p)
			c.add(false)
			m := c.add(false)
			vehicle, _ := add()
			var method rental.MethodID
			if test.named {
				method = m.ID
			}
			booking := bookWith(t, p, vehicle, c.client.ID, method, test.state)
			if test.set != "" {
				id := owe(t, p, booking, test.kind, 1, test.set)
				storetest.Exec(t, p.Pool, `update charges set payment_method_id = $2
					where id = $1 and not $3`, id, m.ID, test.cardless)
			}
			err := c.remove(m.ID)
			var refusal *telematics.Error
			if used := asRefusal(err, &refusal) && refusal.Code == rental.MethodInUse; used != test.used || !used && err != nil {
				t.Fatalf("Remove = %v, want in use %v", err, test.used)
			}
			var named int
			if err := p.Pool.Get(&named, `select count(*) from bookings where id = $1 and payment_method_id is
				not null`, booking); err != nil || (named > 0) != (test.named && test.used) {
				t.Errorf("%d bookings still name the card, %v", named, err)
			}
		})
	}
}
