package rentals

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var _ rental.Cards = (*fixture)(nil)

func TestPostgresKeepsTheContractOfCards(t *testing.T) {
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
				if err != nil {
					t.Fatal(err)
				}
				slices.Reverse(lines)
				return slices.DeleteFunc(lines, func(a telematics.Activity) bool { return !strings.HasPrefix(a.Action, "payment_method.") })
			},
		}
	})
}

// bookWith inserts a booking of a vehicle in a state, to be paid with a method; zero: with the
// default.
func bookWith(tb testing.TB, p *fixture, vehicle telematics.VehicleID, client rental.ClientID, method rental.MethodID, state rental.BookingState) rental.BookingID {
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
	if err != nil {
		tb.Fatal(err)
	}
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
	if err != nil {
		tb.Fatal(err)
	}
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
	if err != nil {
		tb.Fatal(err)
	}
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
	if err != nil {
		c.tb.Fatal(err)
	}
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

func TestMethods_ConcurrentChangesKeepOneDefaultAndEveryChange(t *testing.T) {
	address := storetest.NewDatabase(t)
	instances := []*fixture{openPatient(t, address), openPatient(t, address)}
	storetest.AddVehicle(t, instances[0].DB, 1)
	c := newCardholder(t, instances[0])
	known := []rental.Method{c.add(false), c.add(false), c.add(false), c.add(false)}
	deck := make([]rental.Card, 12) // each is added several times; they exceed the limit
	for i := range deck {
		deck[i] = rentaltest.NewCard()
	}

	ctx, stop := context.WithCancel(t.Context())
	watch := open(t, address)
	var watching sync.WaitGroup
	looks := 0
	watching.Go(func() {
		for ctx.Err() == nil {
			wrong, err := oneDefault(watch, c.client.ID)
			if err != nil || wrong != "" {
				t.Errorf("default of the client: %s %v", wrong, err)
				return
			}
			looks++
		}
	})

	var mu sync.Mutex
	succeeded, refused := map[string]int{}, map[telematics.Code]int{}
	note := func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		var refusal *telematics.Error
		switch {
		case err == nil:
			succeeded[what]++
		case asRefusal(err, &refusal):
			refused[refusal.Code]++
		default:
			t.Errorf("%s: %v", what, err)
		}
	}
	// The caller has read the method; other callers may change it first.
	some := func(here cardholder) rental.MethodID {
		methods, err := here.Methods(t.Context(), c.client.ID)
		if err != nil || len(methods) == 0 {
			t.Errorf("%d methods, %v", len(methods), err)
			return 0
		}
		return methods[rand.IntN(len(methods))].ID
	}
	// Chance decides what succeeds: it goes on until everything has succeeded some times.
	tooFew := func() bool { return succeeded["remove"] < 5 || succeeded["default"] < 5 }
	calls := 0
	for ; calls == 0 || tooFew() && calls < 4000; calls += 200 {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 200 {
			here := cardholder{instances[i%2], t, c.client}
			wg.Go(func() {
				<-start
				switch i % 4 {
				case 0, 3:
					card := deck[rand.IntN(len(deck))]
					card.Token = rentaltest.NewCard().Token
					_, err := here.put(card, i%8 == 0)
					note("add", err)
				case 1:
					note("remove", here.remove(some(here)))
				case 2:
					note("default", here.makeDefault(some(here)))
				}
			})
		}
		close(start)
		wg.Wait()
	}
	stop()
	watching.Wait()

	// The audit entries are written with each change while the client is locked. In their order
	// they must lead to the present methods.
	lines, err := watch.Activities(t.Context(), telematics.ActivityQuery{Actor: c.client.Subject})
	if err != nil {
		t.Fatal(err)
	}
	recorded, there, last := map[string]int{}, map[string]bool{}, ""
	for _, line := range slices.Backward(lines) {
		id := fmt.Sprint(line.Details["payment_method_id"])
		switch line.Action {
		case rental.MethodAdd:
			recorded["add"]++
			there[id] = true
			if line.Details["is_default"] == true {
				last = id
			}
		case rental.MethodRemove:
			recorded["remove"]++
			if !there[id] || id == last {
				t.Errorf("the audit log removes the method %s: present %v, default %s", id, there[id], last)
			}
			delete(there, id)
		case rental.MethodDefault:
			recorded["default"]++
			if !there[id] {
				t.Errorf("the audit log makes %s the default, which is not present", id)
			}
			last = id
		}
	}
	succeeded["add"] += len(known)
	if fmt.Sprint(recorded) != fmt.Sprint(succeeded) {
		t.Errorf("the audit log has %v, the callers got %v", recorded, succeeded)
	}
	methods, err := watch.Methods(t.Context(), c.client.ID)
	if err != nil || len(methods) != len(there) {
		t.Fatalf("%d methods, %v; the audit log leads to %d", len(methods), err, len(there))
	}
	for _, m := range methods {
		if id := fmt.Sprint(m.ID); !there[id] || m.Default != (id == last) {
			t.Errorf("method %+v: by the audit log present %v, default %s", m, there[id], last)
		}
	}
	all := 0
	for _, n := range refused {
		all += n
	}
	for _, n := range succeeded {
		all += n
	}
	if all != calls+len(known) || looks < 20 || tooFew() {
		t.Errorf("succeeded %v, refused %v, %d snapshots: too few for a valid test", succeeded, refused, looks)
	}
	t.Logf("succeeded %v, refused %v, %d snapshots", succeeded, refused, looks)
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
		"named by an active booking":                        {state: rental.Active, named: true, used: true},
		"named by an upcoming booking":                      {state: rental.Upcoming, named: true},
		"named by a completed booking":                      {state: rental.Completed, named: true},
		"pending charge":                                    {state: rental.Active, kind: rental.StartCharge, set: `state = 'pending'`, used: true},
		"charge with an unknown outcome":                    {state: rental.Active, kind: rental.StartCharge, set: `state = 'unknown'`, used: true},
		"declined charge to be retried":                     {state: rental.Active, kind: rental.FeeCharge, set: `state = 'declined'`, used: true},
		"charge that the owner must confirm":                {state: rental.Active, kind: rental.FeeCharge, set: `state = 'requires_action'`, used: true},
		"held deposit":                                      {state: rental.Active, kind: rental.DepositCharge, set: `state = 'authorized'`, used: true},
		"released deposit":                                  {state: rental.Active, kind: rental.DepositCharge, set: `state = 'released'`},
		"paid charge":                                       {state: rental.Active, kind: rental.StartCharge, set: `state = 'paid'`},
		"failed charge":                                     {state: rental.Active, kind: rental.StartCharge, set: `state = 'failed'`},
		"declined charge, card barred":                      {state: rental.Active, kind: rental.StartCharge, set: `state = 'declined', hard = true`},
		"refund":                                            {state: rental.Active, kind: rental.RefundCharge, set: `state = 'pending'`},
		"fee of a completed booking":                        {state: rental.Completed, kind: rental.FeeCharge, set: `state = 'pending'`},
		"leased fee of a completed booking":                 {state: rental.Completed, kind: rental.FeeCharge, set: `state = 'pending', lease = gen_random_uuid(), lease_until = now() + interval '1 minute'`, used: true},
		"leased fee without a card":                         {state: rental.Completed, kind: rental.FeeCharge, set: `state = 'pending', lease_until = now() + interval '1 minute'`, cardless: true, used: true},
		"leased fee without a card, booking names the card": {state: rental.Completed, named: true, kind: rental.FeeCharge, set: `state = 'pending', lease_until = now() + interval '1 minute'`, cardless: true, used: true},
		"fee without a card":                                {state: rental.Active, kind: rental.FeeCharge, set: `state = 'pending'`, cardless: true},
		"fee with an expired lease":                         {state: rental.Completed, kind: rental.FeeCharge, set: `state = 'pending', lease = gen_random_uuid(), lease_until = now() - interval '1 minute'`},
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
				if _, err := p.Pool.Exec(`update charges set payment_method_id = $2 where id = $1 and not $3`, id, m.ID, test.cardless); err != nil {
					t.Fatal(err)
				}
			}
			err := c.remove(m.ID)
			var refusal *telematics.Error
			if used := asRefusal(err, &refusal) && refusal.Code == rental.MethodInUse; used != test.used || !used && err != nil {
				t.Fatalf("Remove = %v, want in use %v", err, test.used)
			}
			var named int
			if err := p.Pool.Get(&named, `select count(*) from bookings where id = $1 and payment_method_id is not null`, booking); err != nil || (named > 0) != (test.named && test.used) {
				t.Errorf("%d bookings still name the card, %v", named, err)
			}
		})
	}
}
