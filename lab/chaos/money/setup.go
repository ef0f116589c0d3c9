package money

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/rental/wallet"
	"motorpool/store/pg"
	"motorpool/store/rentals"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// agencies are the two agencies. One has a currency without decimals. They wait for payments for
// longer than a round lasts, so that no extension is taken back.
var agencies = map[telematics.AgencyID]rental.Terms{
	1: {Currency: "EUR", Tax: 190_000, PaymentWait: 24 * time.Hour},
	2: {Currency: "JPY", Tax: 100_000, PaymentWait: 24 * time.Hour},
}

// client is a renter.
type client struct {
	actor telematics.Actor
	token string
	// nextCard becomes the default in the middle of the round; zero: none.
	nextCard rental.MethodID
}

// wallets are the cards of clients, by the processor's published test ids; the first is the
// default.
var wallets = []struct {
	cards []string
	next  int // index of the card that becomes the default in the middle of the round; zero: none
}{
	{cards: []string{"pm_card_visa"}},
	// Every charge is declined.
	{cards: []string{"pm_card_chargeCustomerFail", "pm_card_visa"}, next: 1},
	{cards: []string{"pm_card_mastercard"}},
	{cards: []string{"pm_card_pendingRefund"}}, // refunds succeed later
	{cards: []string{"pm_card_amex", "pm_card_discover"}, next: 1},
	{cards: []string{"pm_card_refundFail"}}, // refunds succeed, and come back
	{cards: []string{"pm_card_visa_debit"}},
	{cards: []string{"pm_card_jcb"}},
}

// booking is a booking that has not begun.
type booking struct {
	id     rental.BookingID
	client *client
	terms  rental.Terms
	end    time.Time
}

// clientsOf returns the number of clients for a number of bookings: at least one of each wallet in
// each agency.
func clientsOf(bookings int) int {
	perRound := len(agencies) * len(wallets)
	return perRound * max(1, bookings/20/perRound)
}

// createBookings stores vehicles, clients, cards and bookings, without the service.
func (r *round) createBookings(ctx context.Context) error {
	if err := r.createClients(ctx, r.fleet(), r.Bookings); err != nil {
		return err
	}
	return r.WithStore(func(db *pg.DB) error { return r.addBookings(ctx, rentals.Bookings{DB: db}) })
}

// createClients stores vehicles, and the clients of a number of bookings with their cards, without
// the service.
func (r *round) createClients(ctx context.Context, f vehicles.FleetFile, bookings int) error {
	if err := errors.Join(r.Migrate(ctx), r.Import(ctx, f)); err != nil {
		return err
	}
	for agency := range agencies {
		var err error
		if r.agencyKeys[agency], err = r.AddAgencyKey(ctx, agency); err != nil {
			return err
		}
	}
	processor := stripe.New(stripe.Config{Key: r.PaymentsKey, BaseURL: r.processor.URL()})
	defer processor.Close()
	return r.WithStore(func(db *pg.DB) error {
		return r.addClients(ctx, clientsOf(bookings), wallet.New(wallet.Config{
			Cards: rentals.Cards{DB: db}, Processor: processor, Log: slog.New(slog.DiscardHandler),
		}))
	})
}

// fleet is a vehicle for each booking.
func (r *round) fleet() vehicles.FleetFile {
	return fleetOf(agencies, r.Bookings, func(i int) (telematics.Unit, rental.Rate) {
		return "", rental.Rate{Hourly: rental.Minor(1001 + i), Deposit: rental.Minor(i%4) * 5_000}
	})
}

// fleetOf is n vehicles of two agencies, in turns, each with its unit and rate.
func fleetOf(
	terms map[telematics.AgencyID]rental.Terms, n int, of func(i int) (telematics.Unit, rental.Rate),
) vehicles.FleetFile {
	f := vehicles.FleetFile{
		Agencies: []telematics.Agency{{ID: 1, Code: "ONE", Name: "One"}, {ID: 2, Code: "TWO", Name: "Two"}},
		Terms:    terms, Rates: map[telematics.VehicleID]rental.Rate{},
	}
	for agency := range terms {
		f.Stations = append(
			f.Stations,
			telematics.Station{ID: telematics.StationID(agency), AgencyID: agency, Name: "Station", Address: "Street 1"},
		)
	}
	for i := range n {
		unit, rate := of(i)
		v := world.Vehicle(i+1, agencyOf(i), unit)
		f.Vehicles = append(f.Vehicles, v)
		f.Rates[v.ID] = rate
	}
	return f
}

func agencyOf(i int) telematics.AgencyID { return telematics.AgencyID(1 + i%len(agencies)) }

func (r *round) addClients(ctx context.Context, n int, wallet *wallet.Wallet) error {
	r.clients = make([]*client, n)
	return all(len(r.clients), func(i int) (err error) {
		c := &client{actor: telematics.Actor{Subject: fmt.Sprintf("client-%d", i), Role: telematics.Client, Agency: agencyOf(i)}}
		r.clients[i] = c
		if c.token, err = r.Token(c.actor); err != nil {
			return err
		}
		kind := wallets[i/len(agencies)%len(wallets)]
		for n, card := range kind.cards {
			added, err := wallet.Add(ctx, rental.NewCard{Token: card, Actor: c.actor, Activity: activity(c.actor, rental.MethodAdd)})
			if err != nil {
				return err
			}
			if n > 0 && n == kind.next {
				c.nextCard = added.Method.ID
			}
		}
		return nil
	})
}

func (r *round) addBookings(ctx context.Context, record rentals.Bookings) error {
	rng := rand.New(rand.NewPCG(r.Seed, 0xb00))
	owners := make([]*client, r.Bookings)
	for i := range owners {
		// every client gets one at first, so that each wallet has bookings
		n := i
		if i >= len(r.clients) {
			n = rng.IntN(len(r.clients)/len(agencies))*len(agencies) + i%len(agencies)
		}
		owners[i] = r.clients[n]
	}
	r.bookings = make([]booking, r.Bookings)
	now := time.Now().UTC()
	admin := telematics.Actor{Subject: "chaos", Role: telematics.Admin}
	return all(r.Bookings, func(i int) error {
		start := now.Add(time.Hour).Truncate(time.Minute)
		station := telematics.StationID(agencyOf(i))
		made, _, err := record.OpenBooking(ctx, rental.Draft{
			Agency: agencyOf(i), Client: owners[i].actor.Subject, Vehicle: telematics.VehicleID(i + 1),
			Start: start, End: start.Add(time.Duration(60+i%600) * time.Minute), Pickup: station, Dropoff: station,
		}, rental.Request{Actor: admin, Activity: activity(admin, rental.BookingCreate), Now: now})
		r.bookings[i] = booking{id: made.ID, client: owners[i], terms: agencies[agencyOf(i)], end: made.End}
		return err
	})
}

func activity(actor telematics.Actor, action string) telematics.Activity {
	return telematics.Activity{At: time.Now().UTC(), Actor: actor, Agency: actor.Agency, Action: action, Outcome: telematics.Executed}
}

// all calls a function n times, some of them concurrently.
func all(n int, do func(int) error) error {
	var work errgroup.Group
	work.SetLimit(8)
	for i := range n {
		work.Go(func() error { return do(i) })
	}
	return work.Wait()
}
