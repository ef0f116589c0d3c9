package money

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/store"
	"motorpool/telematics"
)

// agencies are two, of which one has a currency without decimals.
var agencies = map[telematics.AgencyID]rental.Terms{
	1: {Currency: "EUR", Tax: 190_000},
	2: {Currency: "JPY", Tax: 100_000},
}

// client is somebody who rents.
type client struct {
	actor telematics.Actor
	token string
	// rescue is the card to which the client changes when the first one is declined; zero: no need.
	rescue rental.MethodID
}

// wallets are what clients hold, by the processor's published test ids; the first is the default.
var wallets = []struct {
	cards  []string
	rescue int // the card that becomes the default in the midst of the round; zero: none
}{
	{cards: []string{"pm_card_visa"}},
	{cards: []string{"pm_card_chargeCustomerFail", "pm_card_visa"}, rescue: 1}, // every charge is declined
	{cards: []string{"pm_card_mastercard"}},
	{cards: []string{"pm_card_pendingRefund"}}, // refunds succeed later
	{cards: []string{"pm_card_amex", "pm_card_discover"}, rescue: 1},
	{cards: []string{"pm_card_refundFail"}}, // refunds succeed, and come back
	{cards: []string{"pm_card_visa_debit"}},
	{cards: []string{"pm_card_jcb"}},
}

// booking is one that is still to begin.
type booking struct {
	id     rental.BookingID
	client *client
	terms  rental.Terms
	end    time.Time
}

// clientsOf is how many clients so many bookings have: of each wallet one in each agency, or more.
func clientsOf(bookings int) int {
	perRound := len(agencies) * len(wallets)
	return perRound * max(1, bookings/20/perRound)
}

// furnish puts vehicles, clients, cards and bookings on record, past the service, while nothing is broken.
func (w *world) furnish(ctx context.Context) error {
	postgres, err := store.New(store.Config{URL: w.postgres.URL(), Timeout: time.Minute}) // a busy machine is no fault here
	if err != nil {
		return err
	}
	defer postgres.Close()
	if _, err := postgres.Migrate(ctx); err != nil {
		return err
	}
	if _, err := postgres.Import(ctx, w.fleet()); err != nil {
		return err
	}
	sealer, err := store.NewSealer(w.sealing)
	if err != nil {
		return err
	}
	w.agencyKeys = map[telematics.AgencyID]rental.AgencyKey{}
	for agency := range agencies {
		key, _, err := postgres.AgencyKeys(sealer).Add(ctx, agency, telematics.OperatorAt("chaos"))
		if err != nil {
			return err
		}
		w.agencyKeys[agency] = key
	}
	processor := stripe.New(stripe.Config{Key: w.processor.Key(), BaseURL: w.processor.URL()})
	defer processor.Close()
	wallet := rental.NewWallet(rental.WalletConfig{Cards: postgres, Processor: processor, Log: slog.New(slog.DiscardHandler)})
	if err := w.addClients(ctx, wallet); err != nil {
		return err
	}
	return w.addBookings(ctx, postgres)
}

// fleet is a vehicle for each booking, the odd ones of agency 2.
func (w *world) fleet() store.FleetFile {
	f := store.FleetFile{
		Agencies: []telematics.Agency{{ID: 1, Code: "ONE", Name: "One"}, {ID: 2, Code: "TWO", Name: "Two"}},
		Terms:    agencies, Rates: map[telematics.VehicleID]rental.Rate{},
	}
	for agency := range agencies {
		f.Stations = append(f.Stations, telematics.Station{ID: telematics.StationID(agency), AgencyID: agency, Name: "Station", Address: "Street 1"})
	}
	for i := range w.Bookings {
		v := telematics.Vehicle{
			ID: telematics.VehicleID(i + 1), AgencyID: agencyOf(i), Status: telematics.Available, Powertrain: telematics.Electric,
			Plate: fmt.Sprintf("M-OT %d", i+1), Actions: telematics.ControlActions,
		}
		f.Vehicles = append(f.Vehicles, v)
		f.Rates[v.ID] = rental.Rate{Hourly: rental.Minor(1001 + i), Deposit: rental.Minor(i%4) * 5_000}
	}
	return f
}

func agencyOf(i int) telematics.AgencyID { return telematics.AgencyID(1 + i%len(agencies)) }

func (w *world) addClients(ctx context.Context, wallet *rental.Wallet) error {
	w.clients = make([]*client, clientsOf(w.Bookings))
	return all(len(w.clients), func(i int) (err error) {
		c := &client{actor: telematics.Actor{Subject: fmt.Sprintf("client-%d", i), Role: telematics.Client, Agency: agencyOf(i)}}
		w.clients[i] = c
		if c.token, err = w.token(c.actor, ""); err != nil {
			return err
		}
		kind := wallets[i/len(agencies)%len(wallets)]
		for n, card := range kind.cards {
			added, err := wallet.Add(ctx, rental.NewCard{Token: card, Actor: c.actor, Line: line(c.actor, rental.MethodAdd)})
			if err != nil {
				return err
			}
			if n > 0 && n == kind.rescue {
				c.rescue = added.Method.ID
			}
		}
		return nil
	})
}

func (w *world) addBookings(ctx context.Context, postgres *store.Postgres) error {
	rng := rand.New(rand.NewPCG(w.Seed, 0xb00))
	owners := make([]*client, w.Bookings)
	for i := range owners {
		// each client has one in turn at first, so that there are bookings of every wallet
		n := i
		if i >= len(w.clients) {
			n = rng.IntN(len(w.clients)/len(agencies))*len(agencies) + i%len(agencies)
		}
		owners[i] = w.clients[n]
	}
	w.bookings = make([]booking, w.Bookings)
	now := time.Now().UTC()
	admin := telematics.Actor{Subject: "chaos", Role: telematics.Admin}
	return all(w.Bookings, func(i int) error {
		start := now.Add(time.Hour).Truncate(time.Minute)
		station := telematics.StationID(agencyOf(i))
		made, _, err := postgres.OpenBooking(ctx, rental.Draft{
			Agency: agencyOf(i), Client: owners[i].actor.Subject, Vehicle: telematics.VehicleID(i + 1),
			Start: start, End: start.Add(time.Duration(60+i%600) * time.Minute), Pickup: station, Dropoff: station,
		}, rental.Request{Actor: admin, Line: line(admin, rental.BookingCreate), Now: now})
		w.bookings[i] = booking{id: made.ID, client: owners[i], terms: agencies[agencyOf(i)], end: made.End}
		return err
	})
}

func line(actor telematics.Actor, action string) telematics.Activity {
	return telematics.Activity{At: time.Now().UTC(), Actor: actor, Agency: actor.Agency, Action: action, Outcome: telematics.Executed}
}

// all does something n times, some at once.
func all(n int, do func(int) error) error {
	const atOnce = 8
	var work sync.WaitGroup
	failures := make([]error, atOnce)
	for hand := range atOnce {
		work.Go(func() {
			for i := hand; i < n && failures[hand] == nil; i += atOnce {
				failures[hand] = do(i)
			}
		})
	}
	work.Wait()
	return errors.Join(failures...)
}
