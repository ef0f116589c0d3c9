package measure

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"motorpool/lab/bench/load"
	"motorpool/lab/bench/report"
	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/simulator/sandbox"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// Rental measures what the start of a rental adds to its payment and its command.
type Rental struct {
	Starts int `default:"20" placeholder:"N" help:"Rentals of one round, one after the other."`
}

// renter is a client of the agency with its app, at one instance.
type renter struct {
	*testWorld
	at     *world.Instance
	app    rental.AgencyKey
	token  string
	client *http.Client
	calls  int
}

const renterName = "renter"

// Measure implements Experiment.
func (m *Rental) Measure(ctx context.Context, s Setup, r *report.Results) (err error) {
	w, err := s.newWorld(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	c, err := w.newRenter(ctx)
	if err != nil {
		return err
	}
	if _, err := c.rent(ctx, 5); err != nil { // the first ones cost more
		return err
	}
	return takeTurns(ctx, r, s.Rounds, side{"Rental/side=service", func() (report.Round, error) { return c.rent(ctx, m.Starts) }})
}

// newRenter starts an instance, a payment processor, and the agency's one vehicle, and gives a
// client a card.
func (w *testWorld) newRenter(ctx context.Context) (*renter, error) {
	processor, err := sandbox.Start(sandbox.Config{Key: w.PaymentsKey, WebhookSecret: w.WebhookSecret})
	if err != nil {
		return nil, err
	}
	w.OnClose(processor.Close)
	vehicle := world.Vehicle(1, agency, load.UnitOf(1))
	if err := w.Import(ctx, vehicles.FleetFile{
		Agencies: []telematics.Agency{{ID: agency, Code: "BENCH", Name: "Bench"}},
		Stations: []telematics.Station{{ID: 1, AgencyID: agency, Name: "Station", Address: "Street 1"}},
		Terms:    map[telematics.AgencyID]rental.Terms{agency: {Currency: "EUR"}}, Vehicles: []telematics.Vehicle{vehicle},
		Rates: map[telematics.VehicleID]rental.Rate{1: {Hourly: 1500, Deposit: 20_000}},
	}); err != nil {
		return nil, err
	}
	c := &renter{testWorld: w, client: &http.Client{}}
	if c.app, err = w.AddAgencyKey(ctx, agency); err != nil {
		return nil, err
	}
	if c.token, err = w.Token(telematics.Actor{Subject: renterName, Role: telematics.Client, Agency: agency}); err != nil {
		return nil, err
	}
	if c.at, err = w.serve(ctx, "MOTORPOOL_CLIENT_RATE=1000000", "MOTORPOOL_CARD_RATE=1000000", "MOTORPOOL_STRIPE_KEY="+w.PaymentsKey,
		"MOTORPOOL_STRIPE_URL="+processor.URL(), "MOTORPOOL_STRIPE_WEBHOOK_SECRET="+w.WebhookSecret); err != nil {
		return nil, err
	}
	processor.SetWebhook(c.at.Public + "/webhooks/stripe")
	fleet := w.StartCars(ctx, w.Fail, simulator.FleetConfig{Broker: w.Mosquitto.UnitsURL(), Keyring: w.Signing.Keyring()}, simulator.Config{
		Unit: vehicle.Unit, Password: w.UnitPassword(vehicle.Unit), Profile: simulator.Profile{Actions: simulator.AllActions},
	})
	if err := world.Eventually(ctx, time.Minute, "the vehicle has reported", func(ctx context.Context) bool {
		known, err := get[bool](ctx, w.db, `select status = 'online' from units where vehicle_id = 1`)
		return err == nil && known && fleet.Cars()[0].Connected()
	}); err != nil {
		return nil, err
	}
	return c, c.call(ctx, "payment-methods", "", `{"payment_method_id":"pm_card_visa","set_default":true}`, nil)
}

// call makes a request of the client, which must succeed.
func (c *renter) call(ctx context.Context, path, key, body string, data any) error {
	path = "/api/v1/client/" + path
	signed := rental.SignedRequest{Method: http.MethodPost, Path: path, Body: []byte(body), Token: c.token}
	return c.send(ctx, world.Request{URL: c.at.Public + path, Token: c.token, Body: signed.Body, Header: map[string]string{
		"Idempotency-Key": key, rental.SignatureHeader: signed.Sign(c.app.ID, c.app.Secret, time.Now(), rand.Text()).String(),
	}}, data)
}

func (c *renter) send(ctx context.Context, r world.Request, data any) error {
	var body struct {
		Message string
		Data    json.RawMessage
	}
	status, _, err := r.Do(ctx, c.client, &body)
	if err == nil && (status < 200 || status > 299 || status == http.StatusAccepted) {
		err = fmt.Errorf("%s: %d %s", r.URL, status, body.Message)
	}
	if err == nil && data != nil {
		err = json.Unmarshal(body.Data, data)
	}
	return err
}

// rent rents the vehicle n times, and returns the medians of the parts of the start, of the same
// command alone, and of what the start adds to its payment and that.
func (c *renter) rent(ctx context.Context, n int) (report.Round, error) {
	parts := map[string][]float64{}
	add := func(name string, d time.Duration) { parts[name] = append(parts[name], d.Seconds()*1000) }
	for range n {
		if err := c.rentOnce(ctx, add); err != nil {
			return nil, err
		}
	}
	round := report.Round{}
	for name, all := range parts {
		slices.Sort(all)
		round[name+"-ms"] = all[len(all)/2]
	}
	return round, nil
}

func (c *renter) rentOnce(ctx context.Context, add func(string, time.Duration)) error {
	c.calls++
	now := time.Now().UTC()
	var made struct{ ID int64 }
	draft := fmt.Sprintf(
		`{"vehicle_id":1,"start_date":%q,"end_date":%q}`, now.Format(time.RFC3339Nano), now.Add(time.Hour).Format(time.RFC3339Nano),
	)
	if err := c.call(ctx, "bookings", "", draft, &made); err != nil {
		return err
	}
	booking, key := fmt.Sprintf("bookings/%d/", made.ID), fmt.Sprintf("start-%d", c.calls)
	began := time.Now()
	if err := c.call(ctx, booking+"start", key, "", nil); err != nil {
		return err
	}
	answered := time.Now()
	var was started
	if err := c.db.GetContext(ctx, &was, startedWhen, made.ID, renterName, key); err != nil {
		return err
	}
	add("start", answered.Sub(began))
	add("admit", was.Requested.Sub(began))
	add("open", was.Opened.Sub(was.Requested))
	add("payment", was.Paid.Sub(was.Opened))
	add("notice", was.Pay.Sub(was.Paid))
	add("command", was.Command.Sub(was.Pay))
	add("book", answered.Sub(was.Command))
	if err := c.call(ctx, booking+"end", "", "", nil); err != nil {
		return err
	}
	// What is refunded and released would be done during the next start.
	if err := world.Eventually(ctx, time.Minute, "the charges are settled", func(ctx context.Context) bool {
		open, err := get[bool](ctx, c.db, `select exists (select from charges where due_at <= now() + interval '1 minute')`)
		return err == nil && !open
	}); err != nil {
		return err
	}
	sent := time.Now()
	alone := world.Request{URL: c.at.Public + "/api/v1/admin/vehicles/1/control/unlock-and-enable-driving", Token: c.testWorld.token}
	if err := c.send(ctx, alone, nil); err != nil {
		return err
	}
	control := time.Since(sent)
	add("control", control)
	add("added", answered.Sub(began)-was.Paid.Sub(was.Opened)-control)
	return nil
}

// started is when the steps of a start ended.
type started struct {
	Requested time.Time // the request was admitted
	Opened    time.Time // the transition and its charges were committed
	Paid      time.Time // the last charge was committed
	Pay       time.Time // the transition noticed that
	Command   time.Time // the vehicle had executed the command, and it was settled
}

const startedWhen = `
	select t.requested_at as requested,
		(select pg_xact_commit_timestamp(xmin) from idempotency_keys where agency_id = 1 and subject = $2 and key = $3) as opened,
		(
			select max(pg_xact_commit_timestamp(xmin)) from activity
			where booking_id = $1 and action in ('charge.start', 'charge.deposit')
		) as paid,
		(select max((s ->> 'at')::timestamptz) from jsonb_array_elements(t.content -> 'steps') s where s ->> 'step' = 'pay') as pay,
		(select max((s ->> 'at')::timestamptz) from jsonb_array_elements(t.content -> 'steps') s where s ->> 'step' = 'command') as command
	from transitions t where t.booking_id = $1 and t.kind = 'start'`
