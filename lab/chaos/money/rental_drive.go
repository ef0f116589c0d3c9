package money

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/telematics"
)

// Rent is what a client wanted of a rental, and was answered.
type Rent struct {
	Booking  rental.BookingID // zero: it got none
	Answered []Answered
	vehicle  telematics.VehicleID
	client   *client
	asked    int // how often it asked for a transition
}

// Answered is a transition that the service has answered as done.
type Answered struct {
	Kind rental.TransitionKind
	At   time.Time
}

const (
	bookWithin = 2 * time.Minute
	// moveWithin is for how long a client tries to make a transition; endWithin, the end.
	moveWithin = 30 * time.Second
	endWithin  = 5 * time.Minute
	startTries = 5
	pollEvery  = 400 * time.Millisecond
	awayFor    = 6 * time.Second // a client that has lost interest
)

// load lets clients rent, and returns when the last has given up or ended.
func (r *driving) load(ctx context.Context, _ <-chan struct{}) {
	r.Progress(fmt.Sprintf("%v of load, with faults", r.Duration))
	begin := time.Now()
	defer func() { r.loaded = time.Since(begin) }()
	var work sync.WaitGroup
	work.Go(func() { r.changeCards(ctx) })
	for i := range r.Rentals {
		world.Pause(ctx, time.Until(begin.Add(r.Duration*time.Duration(i)/time.Duration(r.Rentals))))
		rent := &Rent{client: r.clients[i%len(r.clients)]}
		r.rents = append(r.rents, rent)
		work.Go(func() {
			rng := rand.New(rand.NewPCG(r.Seed, 1<<40+uint64(i)))
			if r.book(ctx, rng, i, rent) {
				r.rent(ctx, rng, rent)
			}
		})
	}
	work.Wait()
}

// book books one of the agency's vehicles from now on, which another client may have taken.
func (r *driving) book(ctx context.Context, rng *rand.Rand, i int, rent *Rent) bool {
	ctx, cancel := context.WithTimeout(ctx, bookWithin)
	defer cancel()
	agency := int(rent.client.actor.Agency)
	for n := 0; ctx.Err() == nil; n++ {
		rent.vehicle = telematics.VehicleID(rng.IntN(len(r.cars)/2)*2 + agency)
		now := time.Now().UTC()
		body, _ := json.Marshal(map[string]any{ // of plain values
			"vehicle_id": rent.vehicle, "start_date": now, "end_date": now.Add(time.Duration(30+rng.IntN(90)) * time.Minute),
			"pickup_station_id": agency, "dropoff_station_id": agency,
		})
		s, _, _ := r.callUntilDefinite(ctx, rng, call{
			path: "/api/v1/client/bookings", body: body, key: fmt.Sprintf("rent-%d-%d", i, n), client: rent.client,
		})
		if s.status == http.StatusCreated {
			var made struct{ ID rental.BookingID }
			_ = json.Unmarshal(s.data, &made)
			rent.Booking = made.ID
			return true
		}
		world.Pause(ctx, time.Second+rand.N(2*time.Second))
	}
	return false
}

// rent starts the rental, uses it, and ends it.
func (r *driving) rent(ctx context.Context, rng *rand.Rand, rent *Rent) {
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	pause := func() { world.Pause(ctx, time.Duration(rng.Int64N(int64(2*time.Second)))) }
	if chance(5) { // never starts: cancels, or lets the reservation lapse
		if chance(50) {
			r.ask(ctx, rng, rent, "cancel", nil)
		}
		return
	}
	for n := 0; !r.move(ctx, rng, rent, rental.StartRental, moveWithin); n++ {
		// A start that is still in progress goes on without its client.
		if s := r.ask(ctx, rng, rent, "cancel", nil); s.status == http.StatusOK || n == startTries {
			return
		}
	}
	if chance(30) {
		pause()
		r.move(ctx, rng, rent, rental.PauseRental, moveWithin)
		pause()
		r.move(ctx, rng, rent, rental.ResumeRental, moveWithin)
	}
	if chance(25) {
		later := time.Now().UTC().Add(3 * time.Hour)
		body, _ := json.Marshal(map[string]any{"end_date": later}) // of plain values
		r.ask(ctx, rng, rent, "extend", body)
	}
	if chance(20) {
		r.ask(ctx, rng, rent, "control/"+string([]telematics.Action{telematics.Lock, telematics.Unlock}[rng.IntN(2)]), nil)
	}
	pause()
	var meanwhile sync.WaitGroup
	if chance(20) { // a door is opened during the end
		after := rand.N(700 * time.Millisecond)
		meanwhile.Go(func() {
			world.Pause(ctx, after)
			r.car(rent).Change(func(b *simulator.Body) { b.Opened = []telematics.Field{telematics.DoorFrontLeft} })
		})
	}
	if chance(15) { // the client's other phone unlocks during the end
		other := rand.New(rand.NewPCG(r.Seed, 1<<41+uint64(rent.Booking)))
		meanwhile.Go(func() {
			for range 4 {
				world.Pause(ctx, rand.N(600*time.Millisecond))
				r.ask(ctx, other, rent, "control/unlock", nil)
			}
		})
	}
	if chance(4) { // staff end it, whatever the car says
		staff := rand.New(rand.NewPCG(r.Seed, 1<<42+uint64(rent.Booking)))
		meanwhile.Go(func() {
			world.Pause(ctx, rand.N(5*time.Second))
			body := []byte(`{"override": true, "reason": "towed away"}`)
			path, key := fmt.Sprintf("/api/v1/admin/bookings/%d/rental/end", rent.Booking), fmt.Sprintf("staff-%d", rent.Booking)
			r.callUntilDefinite(ctx, staff, call{path: path, body: body, key: key})
		})
	}
	r.move(ctx, rng, rent, rental.EndRental, endWithin)
	meanwhile.Wait()
	r.car(rent).Change(func(b *simulator.Body) { b.Opened = nil })
}

func (r *driving) car(rent *Rent) *simulator.Car { return r.cars[rent.vehicle-1] }

// ask makes another request about the booking, once or until its answer is definite.
func (r *driving) ask(ctx context.Context, rng *rand.Rand, rent *Rent, what string, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	c := call{path: rent.path(what), body: body, key: fmt.Sprintf("%d-%s-%d", rent.Booking, what, rng.Uint64()), client: rent.client}
	if rng.IntN(2) == 0 {
		return r.callOnce(ctx, c, r.anyInstance(rng), callTimeout)
	}
	s, _, _ := r.callUntilDefinite(ctx, rng, c)
	return s
}

func (t *Rent) path(what string) string {
	return fmt.Sprintf("/api/v1/client/bookings/%d/%s", t.Booking, what)
}

// shown is a booking, or a transition, as its client sees it.
type shown struct {
	ID     json.RawMessage
	Status rental.BookingState
	Paused bool
	State  rental.TransitionState
}

// readBooking returns the booking; zero: it could not be read.
func (r *driving) readBooking(ctx context.Context, rng *rand.Rand, rent *Rent) (b shown) {
	s := r.callOnce(ctx, call{
		method: http.MethodGet, path: fmt.Sprintf("/api/v1/client/bookings/%d", rent.Booking), client: rent.client,
	}, r.anyInstance(rng), callTimeout)
	_ = json.Unmarshal(s.data, &b)
	return b
}

// has reports whether the booking is as a transition makes it.
func (b shown) has(k rental.TransitionKind) bool {
	switch k {
	case rental.StartRental:
		return b.Status == rental.Active || b.Status == rental.Completed
	case rental.PauseRental:
		return b.Status == rental.Active && b.Paused
	case rental.ResumeRental:
		return b.Status == rental.Active && !b.Paused
	}
	return b.Status == rental.Completed
}

// preferences are how clients wait for a transition.
var preferences = []string{"", "", "wait=3", "respond-async"}

// move asks for a transition, with the same key or others, until the booking is as it wants it, or
// it cannot be. Some clients give up, and some cancel.
func (r *driving) move(ctx context.Context, rng *rand.Rand, rent *Rent, kind rental.TransitionKind, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	key := ""
	for refused := 0; ctx.Err() == nil; {
		if rent.asked++; key == "" || rng.IntN(100) < 30 {
			key = fmt.Sprintf("%d-%s-%d", rent.Booking, kind, rent.asked)
		}
		c := call{path: rent.path(string(kind)), key: key, client: rent.client, prefer: preferences[rng.IntN(len(preferences))]}
		if rng.IntN(100) < 10 {
			c.key = ""
		}
		patience := moveWithin
		if rng.IntN(100) < hangUpPercent {
			patience = rand.N(2 * time.Second)
		}
		s := r.callOnce(ctx, c, r.anyInstance(rng), patience)
		switch {
		case s.status == http.StatusOK:
			rent.Answered = append(rent.Answered, Answered{kind, time.Now()})
			return true
		case s.status == http.StatusAccepted:
			if !r.follow(ctx, rng, rent, kind, s) {
				world.Pause(ctx, awayFor)
			}
			key = ""
		case s.code == rental.ReturnNotPossible, s.code == telematics.VehicleStateConflict:
			r.car(rent).Change(func(b *simulator.Body) { b.Opened = nil })
			key = ""
		case s.status == 0, s.code == telematics.IdempotencyInProgress, s.code == rental.TransitionIsOpen:
		default:
			key = ""
			refused++
		}
		b := r.readBooking(ctx, rng, rent)
		switch {
		case b.has(kind):
			return true
		case refused > 2 && kind != rental.EndRental, b.Status == rental.Cancelled,
			b.Status == rental.Upcoming && kind != rental.StartRental:
			return false
		}
		world.Pause(ctx, pollEvery+rand.N(pollEvery))
	}
	return false
}

// follow looks at a transition until it has ended. It returns false if its client lost interest.
func (r *driving) follow(ctx context.Context, rng *rand.Rand, rent *Rent, kind rental.TransitionKind, s answer) bool {
	var t shown
	var id string
	if json.Unmarshal(s.data, &t) != nil || json.Unmarshal(t.ID, &id) != nil {
		return true
	}
	cancels, leaves := rng.IntN(100) < 15 && kind == rental.StartRental, rng.IntN(100) < 15
	for n := 0; ctx.Err() == nil && t.State == rental.TransitionOpen; n++ {
		if leaves {
			return false
		}
		world.Pause(ctx, pollEvery)
		if cancels && n%3 == 1 {
			r.ask(ctx, rng, rent, "transitions/"+id+"/cancel", nil)
		}
		got := r.callOnce(ctx, call{
			method: http.MethodGet, path: rent.path("transitions/" + id), client: rent.client,
		}, r.anyInstance(rng), callTimeout)
		_ = json.Unmarshal(got.data, &t)
		if n > 20 && kind != rental.EndRental {
			return true // it requests the transition once more
		}
	}
	return true
}
