package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/rental/wallet"
	"motorpool/store/agencykeys"
	"motorpool/store/pg"
	"motorpool/store/rentals"
	"motorpool/telematics"
)

// Clients of the demo.
var (
	firstClient  = telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}
	otherClient  = telematics.Actor{Subject: "client-2", Role: telematics.Client, Agency: 1}
	agency2sOwn  = telematics.Actor{Subject: "client-3", Role: telematics.Client, Agency: 2}
	demoOperator = telematics.Actor{Subject: "dev", Role: telematics.Admin}
)

// wallets are the cards of the demo's clients, by the processor's published test ids; the first is
// the default.
var wallets = []struct {
	client   telematics.Actor
	cards    []string
	lastFour string // of the first
}{
	{firstClient, []string{"pm_card_visa", "pm_card_amex"}, "4242"},
	{otherClient, []string{"pm_card_mastercard"}, "4444"},
	{agency2sOwn, []string{"pm_card_visa"}, "4242"},
}

// demoBooking is a booking that exists after each start.
type demoBooking struct {
	variable string // of the env file
	client   telematics.Actor
	vehicle  telematics.VehicleID
	state    rental.BookingState
	begins   time.Duration // from the present hour on
	hours    int
	pickup   telematics.StationID
	dropoff  telematics.StationID
}

// demoBookings are in the order in which the demo creates them.
var demoBookings = []demoBooking{
	{"BOOKING_COMPLETED", firstClient, 4, rental.Completed, -50 * time.Hour, 3, 2, 2},
	{"BOOKING_ACTIVE", firstClient, 1, rental.Active, 0, 8, 1, 2},
	{"BOOKING_UPCOMING", firstClient, 2, rental.Upcoming, 26 * time.Hour, 4, 3, 3},
	{"BOOKING_OTHER", otherClient, 3, rental.Active, 0, 6, 1, 1},
	{"BOOKING_OTHER_AGENCY", agency2sOwn, 9, rental.Upcoming, 30 * time.Hour, 5, 4, 5},
}

// demo creates cards, then bookings.
type demo struct {
	bookings rentals.Bookings
	wallet   *wallet.Wallet
	log      *slog.Logger

	begun []rental.BookingID // bookings that have begun, and so have charges
}

// create returns the ids of the demo's bookings, as variables. It leaves a booking out if its
// vehicle is not available: changes by the developer come first.
func (d *demo) create(ctx context.Context) ([]variable, error) {
	for _, w := range wallets {
		if err := d.addCards(ctx, w.client, w.cards); err != nil {
			return nil, fmt.Errorf("demo cards of %s: %w", w.client.Subject, err)
		}
	}
	var ids []variable
	for _, b := range demoBookings {
		id, err := d.findOrCreate(ctx, b)
		var refusal *telematics.Error
		var wrong *rental.FieldError
		if errors.As(err, &refusal) || errors.As(err, &wrong) {
			d.log.Warn(
				"demo booking skipped; start with an empty data folder to create it", "variable", b.variable,
				"vehicle", b.vehicle, "err", err,
			)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("demo booking %s: %w", b.variable, err)
		}
		if b.state != rental.Upcoming {
			d.begun = append(d.begun, id)
		}
		ids = append(ids, variable{b.variable, fmt.Sprint(id)})
	}
	return ids, nil
}

// addCards gives a client its cards, unless it has some.
func (d *demo) addCards(ctx context.Context, client telematics.Actor, cards []string) error {
	held, err := d.wallet.List(ctx, client)
	if err != nil || len(held) > 0 {
		return err
	}
	for _, card := range cards {
		if _, err := d.wallet.Add(ctx, rental.NewCard{Token: card, Actor: client, Activity: d.line(client, rental.MethodAdd)}); err != nil {
			return err
		}
	}
	return nil
}

// makeSolvent makes a valid card the default, so that charges for a new booking are paid: the
// default may be one that is always declined.
func (d *demo) makeSolvent(ctx context.Context, client telematics.Actor) error {
	held, err := d.wallet.List(ctx, client)
	if err != nil {
		return err
	}
	for _, w := range wallets {
		if w.client != client || slices.ContainsFunc(held, func(m rental.Method) bool { return m.Default && m.LastFour == w.lastFour }) {
			continue
		}
		card := rental.NewCard{Token: w.cards[0], Default: true, Actor: client, Activity: d.line(client, rental.MethodAdd)}
		if _, err := d.wallet.Add(ctx, card); err != nil {
			return err
		}
	}
	return nil
}

// findOrCreate returns the existing booking, with valid dates, or creates it.
func (d *demo) findOrCreate(ctx context.Context, b demoBooking) (rental.BookingID, error) {
	there, err := d.bookings.FindBookings(ctx, rental.BookingQuery{
		Agency: b.client.Agency, Client: b.client.Subject, Vehicle: b.vehicle, States: []rental.BookingState{b.state},
		Page: telematics.Page{Limit: 1},
	})
	if err != nil {
		return 0, err
	}
	if len(there) == 0 {
		return d.createBooking(ctx, b)
	}
	return there[0].ID, d.redate(ctx, b, there[0])
}

// createBooking creates a booking, and brings it into its state.
func (d *demo) createBooking(ctx context.Context, b demoBooking) (rental.BookingID, error) {
	if b.state != rental.Upcoming {
		if err := d.makeSolvent(ctx, b.client); err != nil {
			return 0, err
		}
	}
	now := time.Now().UTC()
	start := now.Truncate(time.Hour)
	if b.state == rental.Upcoming {
		start = start.Add(b.begins)
	}
	if earliest := now.Add(time.Minute); b.state != rental.Upcoming && start.Before(earliest) {
		// A booking must begin after it is made; redate changes that later.
		start = earliest.Truncate(time.Second)
	}
	made, _, err := d.bookings.OpenBooking(ctx, rental.Draft{
		Agency: b.client.Agency, Client: b.client.Subject, Vehicle: b.vehicle,
		Start: start, End: start.Add(time.Duration(b.hours) * time.Hour), Pickup: b.pickup, Dropoff: b.dropoff,
	}, d.request(0, rental.BookingCreate))
	if err != nil {
		return 0, err
	}
	steps := []struct {
		activity string
		decide   rental.Decision
	}{
		{rental.BookingStart, func(x rental.BookingDetails) (rental.Change, error) { return x.Begin(time.Now().UTC()) }},
		{rental.BookingEnd, onTime},
	}
	for _, step := range steps[:map[rental.BookingState]int{rental.Upcoming: 0, rental.Active: 1, rental.Completed: 2}[b.state]] {
		if made, _, err = d.bookings.Amend(ctx, d.request(made.ID, step.activity), step.decide); err != nil {
			return 0, err
		}
	}
	return made.ID, d.redate(ctx, b, made)
}

// onTime ends a booking now, as if that were its agreed end; redate then moves it to the past.
func onTime(there rental.BookingDetails) (rental.Change, error) {
	change, err := there.Finish(time.Now().UTC())
	change.Booking.ActualEnd = there.End
	return change, err
}

// redate moves a booking in time: an active one began this hour, unless it has not ended yet; an
// upcoming one has not begun; a completed one is over.
func (d *demo) redate(ctx context.Context, b demoBooking, there rental.BookingDetails) error {
	now := time.Now().UTC()
	fits := map[rental.BookingState]bool{
		rental.Active: !there.Start.After(now) && there.End.After(now.Add(time.Hour)) &&
			there.Start.Equal(there.Start.Truncate(time.Hour)),
		rental.Upcoming:  there.Start.After(now.Add(2 * time.Hour)),
		rental.Completed: there.End.Before(now),
	}
	if fits[b.state] {
		return nil
	}
	begin := now.Truncate(time.Hour).Add(b.begins)
	err := d.bookings.Redate(ctx, there.ID, begin.Sub(there.Start))
	var refusal *telematics.Error
	if errors.As(err, &refusal) { // the vehicle is booked for that time
		d.log.Warn("demo booking not moved to the present", "booking", there.ID, "err", err)
		return nil
	}
	return err
}

func (d *demo) request(id rental.BookingID, activity string) rental.Request {
	return rental.Request{Booking: id, Actor: demoOperator, Activity: d.line(demoOperator, activity), Now: time.Now().UTC()}
}

func (*demo) line(actor telematics.Actor, activity string) telematics.Activity {
	return telematics.Activity{At: time.Now().UTC(), Actor: actor, Agency: actor.Agency, Action: activity, Outcome: telematics.Executed}
}

// createDemo creates the demo's cards and bookings, and adds variables for them and for the app of
// agency 1. It returns when the charges are paid.
func (e *environment) createDemo(ctx context.Context, here *endpoints, db *pg.DB, key rental.AgencyKey, processorURL string) error {
	here.env = append(here.env, variable{"AGENCY_KEY_ID", key.ID}, variable{"AGENCY_SECRET", hex.EncodeToString(key.Secret)},
		variable{"SANDBOX_URL", processorURL})
	processor := stripe.New(stripe.Config{Key: e.PaymentsKey, BaseURL: processorURL, Logger: e.log})
	defer processor.Close()
	d := &demo{
		bookings: rentals.Bookings{DB: db}, log: e.log,
		wallet: wallet.New(wallet.Config{Cards: rentals.Cards{DB: db}, Processor: processor, Log: e.log}),
	}
	ids, err := d.create(ctx)
	if err != nil {
		return err
	}
	here.env = append(here.env, ids...)
	return e.settle(ctx, here, d)
}

// settleWithin is how long a start waits for the payments of the demo's bookings.
const settleWithin = 10 * time.Second

// settle waits until the demo's bookings are paid. If the sandbox was configured to fail, or lost
// its file, the environment starts nevertheless.
func (e *environment) settle(ctx context.Context, here *endpoints, d *demo) error {
	within, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	err := here.await(within, "the demo bookings are paid", d.paid)
	if err != nil && ctx.Err() == nil {
		e.log.Warn("payments of the demo bookings are still pending", "bookings", d.begun, "waited", settleWithin)
		return nil
	}
	return err
}

// agencyKey returns the first key of agency 1's app that can be decrypted, else a new one.
func (e *environment) agencyKey(ctx context.Context, db *pg.DB) (rental.AgencyKey, error) {
	sealer, err := agencykeys.NewSealer(e.AgencySecrets)
	if err != nil {
		return rental.AgencyKey{}, err
	}
	keys := agencykeys.New(db, sealer)
	there, err := keys.List(ctx)
	if err != nil {
		return rental.AgencyKey{}, err
	}
	for _, k := range there {
		if k.Agency != firstClient.Agency || k.State != rental.KeyActive {
			continue
		}
		if key, ok, err := keys.AgencyKey(ctx, k.ID); err == nil && ok {
			return key, nil
		}
	}
	key, _, err := keys.Add(ctx, firstClient.Agency, telematics.OperatorAt(demoOperator.Subject))
	return key, err
}

// paid reports whether no payment for the demo's bookings that have begun is pending.
func (d *demo) paid(ctx context.Context) bool {
	for _, id := range d.begun {
		there, err := d.bookings.BookingDetails(ctx, id)
		if err != nil || there.Payment().Status == rental.PaymentPending {
			return false
		}
	}
	return true
}
