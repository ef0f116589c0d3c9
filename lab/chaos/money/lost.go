package money

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/telematics"
)

// In a round of lost commits, an asynchronous standby that is some seconds behind is promoted while
// bookings are made, started, ended and fined; there is no other fault. Then each caller repeats
// what it did, in its order and with its keys, and goes on; and other bookings are made. What the
// record has forgotten is done again, and no money moves again.

const (
	// behind is how many seconds of commits are lost.
	behind = 3 * time.Second
	// minLost is how many confirmed operations must be lost at least.
	minLost = 5
)

// loseCommits fails over to the standby in the middle of the load, which it stops: what was
// requested and is lost must be repeated before what follows.
func (r *round) loseCommits(ctx context.Context) error {
	world.Pause(ctx, r.Duration/2)
	r.standby.CutOff()
	world.Pause(ctx, behind)
	close(r.lost)
	if err := r.standby.Replace(ctx); err != nil {
		return err
	}
	db, err := sqlx.Open("postgres", r.standby.Postgres.URL()+"&connect_timeout=2")
	if err != nil {
		return err
	}
	r.OnClose(db.Close)
	r.db = db
	return nil
}

// Name is what people or systems remember of a booking, and what it was shown for.
type Name struct {
	Name string // its reference, or its id
	Of   string // what the booking is of: client, vehicle and start
	At   time.Time
}

const (
	// bookingEvery is the interval at which bookings are made in such a round.
	bookingEvery = 100 * time.Millisecond
	// bookedAfter is how long bookings are made after the failover: for longer than before it.
	bookedAfter = 2 * behind
)

// makeBookings makes bookings of all clients in turns, each of another start, until the context
// ends, and returns what the answers named them.
func (r *round) makeBookings(ctx context.Context) (shown []Name) {
	rng := rand.New(rand.NewPCG(r.Seed, 1<<37))
	for n := 0; ctx.Err() == nil; n++ {
		b := r.bookings[n%len(r.bookings)]
		start := b.end.AddDate(0, 0, 7+2*n).UTC().Truncate(time.Minute)
		vehicle := telematics.VehicleID(n%len(r.bookings) + 1)
		body, _ := json.Marshal(map[string]any{ // of plain values
			"agency_id": b.client.actor.Agency, "client": b.client.actor.Subject,
			"vehicle_id": vehicle, "start_date": start, "end_date": start.Add(time.Hour),
			"pickup_station_id": b.client.actor.Agency, "dropoff_station_id": b.client.actor.Agency,
		})
		var made struct {
			Data struct {
				ID        rental.BookingID
				Reference string
			}
		}
		booking := call{path: "/api/v1/admin/bookings", body: body, key: fmt.Sprintf("booking-%d", n)}
		status, _, err := r.request(booking, r.anyInstance(rng)).Do(ctx, world.Callers, &made)
		if err == nil && status == http.StatusCreated {
			of := nameOf(b.client.actor.Subject, vehicle, start)
			shown = append(shown, Name{made.Data.Reference, of, time.Now()}, Name{fmt.Sprint(made.Data.ID), of, time.Now()})
		}
		world.Pause(ctx, bookingEvery)
	}
	return shown
}

// nameOf says what a booking is of.
func nameOf(subject string, vehicle telematics.VehicleID, start time.Time) string {
	return fmt.Sprintf("%s, vehicle %d, from %s", subject, vehicle, start.UTC().Format(time.DateTime))
}

// readNames returns the names of all bookings on record.
func (r *round) readNames(ctx context.Context) (recorded []Name, err error) {
	var rows []struct {
		ID        rental.BookingID
		Reference string
		Subject   string
		Vehicle   telematics.VehicleID
		Start     time.Time
	}
	err = r.db.SelectContext(ctx, &rows, `select b.id, b.reference, c.subject, b.vehicle_id as vehicle, b.start_at as start
		from bookings b join clients c on c.id = b.client_id`)
	for _, row := range rows {
		of := nameOf(row.Subject, row.Vehicle, row.Start)
		recorded = append(recorded, Name{row.Reference, of, time.Now()}, Name{fmt.Sprint(row.ID), of, time.Now()})
	}
	return recorded, err
}

// repeatAll lets callers repeat, in their order, what they requested, with the same keys: what was
// refused since the record had forgotten what was before, too. It counts what was confirmed, and is
// no replay.
func (r *round) repeatAll(ctx context.Context) error {
	r.healed.Store(true)
	return all(len(r.bookings), func(i int) error {
		rng := rand.New(rand.NewPCG(r.Seed, 1<<36+uint64(i)))
		for _, d := range r.operations[i] {
			before := d.Done()
			s, tries, _ := r.callUntilDefinite(ctx, rng, r.bookings[i].call(d))
			d.Status, d.Code, d.Tries, d.Repeated = s.status, s.code, d.Tries+tries, 0
			if before && s.status != 0 && !s.replayed {
				r.forgotten.Add(d.Kind)
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("repeat operations: %w", ctx.Err())
		}
		return nil
	})
}
