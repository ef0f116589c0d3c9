package rentals

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// Clients change their cards, the processor drops some, bookings name them, and workers store
// outcomes of charges: on the same few rows, in any order, by two instances.
func TestRentals_CardsBookingsAndChargesDoNotDeadlock(t *testing.T) {
	address := storetest.NewDatabase(t)
	instances := []*fixture{open(t, address), open(t, address)}
	watch := open(t, address)
	add := storetest.Vehicles(t, watch.DB)
	var clients []*owing
	for range 3 {
		vehicle, _ := add()
		o := newOwing(t, watch, vehicle)
		first := o.add(false)
		o.add(false)
		for range 4 {
			o.fee(declined, first.ID)
		}
		clients = append(clients, o)
	}
	var changes, writes atomic.Int32
	enough := func() bool { return changes.Load() >= 100 && writes.Load() >= 100 }
	ctx := storetest.ForAtLeast(t, 2*time.Second, enough)
	check := func(what string, done *atomic.Int32, err error) {
		var refusal *telematics.Error
		violation := pq.As(err)
		switch {
		case err == nil:
			done.Add(1)
		case errors.As(err, &refusal) && refusal.Code != telematics.Internal:
		case violation != nil && violation.Code == "23503": // a worker names a removed card
		default:
			t.Errorf("%s: %v", what, err)
		}
	}
	var wg sync.WaitGroup
	for _, p := range instances {
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					o := clients[rand.IntN(len(clients))]
					here := cardholder{p, t, o.client}
					methods, err := here.Methods(context.Background(), o.client.ID)
					if err != nil || len(methods) == 0 {
						_, err := here.put(rentaltest.NewCard(), false)
						check("add the first", &changes, err)
						continue
					}
					m := methods[rand.IntN(len(methods))]
					switch rand.IntN(5) {
					case 0:
						check("set default", &changes, here.makeDefault(m.ID))
					case 1:
						check("remove", &changes, here.remove(m.ID))
					case 2:
						_, err := here.put(rentaltest.NewCard(), rand.IntN(2) == 0)
						check("add", &changes, err)
					case 3:
						check("drop", &changes, p.DropCard(context.Background(), m.Token, here.line(rental.MethodDropped)))
					case 4:
						renewed := m.Card
						renewed.Token, renewed.ExpYear = rentaltest.NewCard().Token, 2030+rand.IntN(60)
						_, err := here.put(renewed, false)
						check("renew", &changes, err)
					}
				}
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					o := clients[rand.IntN(len(clients))]
					_, err := p.Pool.Exec(`
						update charges set state = 'declined', hard = random() < 0.3, woken_at = null,
							payment_method_id = (select id from payment_methods where client_id = $2 order by random() limit 1)
						where id = (select id from charges where booking_id = $1 order by random() limit 1 for update skip locked)`,
						o.booking, o.client.ID)
					check("work at a charge", &writes, err)
					_, err = p.Pool.Exec(`
						with client as (select id from clients where id = $2 for no key update)
						update bookings set payment_method_id = (select default_payment_method_id from clients where id = $2)
						where id = $1 and exists (select from client)`, o.booking, o.client.ID)
					check("name a card", &writes, err)
				}
			})
		}
	}
	wg.Wait()
	for _, o := range clients {
		if wrong, err := oneDefault(watch, o.client.ID); err != nil || wrong != "" {
			t.Errorf("default of the client: %s %v", wrong, err)
		}
	}
	if !enough() {
		t.Errorf("%d changes and %d writes are too few, want 100 each", changes.Load(), writes.Load())
	}
	t.Logf("%d changes, %d writes", changes.Load(), writes.Load())
}
