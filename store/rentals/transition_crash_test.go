package rentals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/transitions"
	"motorpool/simulator/sandbox"
	"motorpool/store/settings"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// mortal is the store and the cars of an instance that dies after one of its calls, without its
// result. What it calls later does not happen.
type mortal struct {
	store bothStores
	*cars
	runs    sync.Once
	running chan struct{} // closed once its runner runs

	mu   sync.Mutex // guards what follows
	left int        // calls until it dies
	dead bool
}

// mortalLease is how long others wait for an instance that has died.
const mortalLease = 150 * time.Millisecond

var errDead = errors.New("this instance has died")

// live makes a call, as long as the instance lives.
func live[T any](m *mortal, do func() (T, error)) (T, error) {
	var none T
	m.mu.Lock()
	m.left--
	last, dead := m.left == 0, m.left < 0
	m.mu.Unlock()
	if dead {
		return none, errDead
	}
	result, err := do()
	if last {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dead = true
		return none, errDead
	}
	return result, err
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) BookingDetails(ctx context.Context, id rental.BookingID) (rental.BookingDetails, error) {
	return live(m, func() (rental.BookingDetails, error) { return m.store.BookingDetails(ctx, id) })
}

func (m *mortal) Transition(ctx context.Context, id rental.TransitionID) (rental.Transition, error) {
	return live(m, func() (rental.Transition, error) { return m.store.Transition(ctx, id) })
}

func (m *mortal) RequestedWith(ctx context.Context, key *telematics.IdempotencyKey) (t rental.Transition, made bool, err error) {
	made, err = live(m, func() (bool, error) {
		t, made, err = m.store.RequestedWith(ctx, key)
		return made, err
	})
	return t, made, err
}

func (m *mortal) OpenTransition(
	ctx context.Context, r rental.Request, t rental.Transition, _ time.Duration, decide rental.Decision,
) (bool, error) {
	return live(m, func() (bool, error) { return m.store.OpenTransition(ctx, r, t, mortalLease, decide) })
}

// TakeTransitions takes none: it dies at what it has opened itself.
func (m *mortal) TakeTransitions(context.Context, int, time.Duration) ([]rental.Transition, error) {
	m.runs.Do(func() { close(m.running) })
	return nil, nil
}

func (m *mortal) WriteTransition(ctx context.Context, t rental.Transition, _, wait time.Duration) (bool, error) {
	return live(m, func() (bool, error) { return m.store.WriteTransition(ctx, t, mortalLease, wait) })
}

func (m *mortal) SettleTransition(
	ctx context.Context, t *rental.Transition, _ time.Duration, decide func(rental.BookingDetails) (rental.Settlement, error),
) (bool, error) {
	return live(m, func() (bool, error) { return m.store.SettleTransition(ctx, t, mortalLease, decide) })
}

func (m *mortal) Wish(
	ctx context.Context, r rental.Request, id rental.TransitionID, decide func(*rental.Transition) (string, error),
) (t rental.Transition, replayed bool, err error) {
	replayed, err = live(m, func() (bool, error) {
		t, replayed, err = m.store.Wish(ctx, r, id, decide)
		return replayed, err
	})
	return t, replayed, err
}

func (m *mortal) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return live(m, func() (telematics.Twin, error) { return m.cars.Twin(ctx, id) })
}

// Send does not die before the command is published: then it expires, and nothing was done.
func (m *mortal) Send(ctx context.Context, o *delivery.Order) (delivery.Receipt, error) {
	o.Allowed = func(context.Context) error { return nil }
	return live(m, func() (delivery.Receipt, error) { return m.cars.Send(ctx, o) })
}

func (m *mortal) Command(ctx context.Context, id telematics.CommandID) (telematics.Command, error) {
	return live(m, func() (telematics.Command, error) { return m.cars.Command(ctx, id) })
}

// lossy returns the address of a database behind a proxy. While lose is set, a connection ends
// before the answer of its commit.
func lossy(t *testing.T, address string) (through string, lose *atomic.Bool) {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	server := u.Host
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	u.Host, lose = proxy.Addr().String(), new(atomic.Bool)
	go func() {
		for {
			client, err := proxy.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			lost := new(atomic.Bool)
			pass := func(to, from net.Conn, before func([]byte) (ends bool)) {
				defer to.Close()   //nolint:errcheck // the other side notices
				defer from.Close() //nolint:errcheck // likewise
				for buffer := make([]byte, 1<<16); ; {
					n, err := from.Read(buffer)
					if err != nil || before(buffer[:n]) {
						return
					}
					if _, err := to.Write(buffer[:n]); err != nil {
						return
					}
				}
			}
			go pass(there, client, func(query []byte) bool {
				lost.Store(lost.Load() || bytes.Contains(query, []byte("COMMIT")) && lose.CompareAndSwap(true, false))
				return false
			})
			go pass(client, there, func([]byte) bool { return lost.Load() })
		}
	}()
	return u.String(), lose
}

// The connection ends after the transition is stored, before the answer. It goes on without another
// worker, and is charged once.
func TestOpenTransition_WhoseCommitHasNoAnswer(t *testing.T) {
	w := newRentalWorld(t)
	address, lose := lossy(t, w.address)
	behind := openPatient(t, address)
	for vehicle, key := range map[telematics.VehicleID]string{1: "", 2: "tap-1"} {
		id := w.book(draft(vehicle, 1, 2)).ID
		r := asks(anna, rental.TransitionActivity(rental.StartRental), id, noon.Add(time.Hour))
		if key != "" {
			r = named(r, key, key)
		}
		opened := rental.Transition{
			ID: uuid.New(), Booking: id, Kind: rental.StartRental, State: rental.TransitionOpen, Step: rental.StepPay, By: anna,
			Requested: r.Now, Lease: uuid.New(),
		}
		open := func() (bool, error) {
			return Transitions{behind.DB}.OpenTransition(t.Context(), r, opened, time.Minute,
				func(d rental.BookingDetails) (rental.Change, error) { return d.Open(r.Now, opened.Kind, r.Actor.Role) })
		}
		lose.Store(true)
		if replayed, err := open(); err != nil || replayed || lose.Load() {
			t.Errorf("key %q: replayed %v, %v; want it opened although an answer was lost", key, replayed, err)
		}
		is, err := w.here.BookingDetails(t.Context(), id)
		if err != nil || is.Transition == nil || is.Transition.ID != opened.ID || is.Transition.Lease != opened.Lease ||
			len(is.Charges) != 2 {
			t.Errorf("key %q: transition %+v with %d charges, %v; want it with 2", key, is.Transition, len(is.Charges), err)
		}
	}
}

// The connection ends after a change is stored, before the answer. It is returned all the same, so
// that its event is published.
func TestRetryLost_WhatIsStoredIsReported(t *testing.T) {
	w := newRentalWorld(t)
	address, lose := lossy(t, w.address)
	behind := openPatient(t, address)
	lapses, ends := w.book(draft(1, 1, 2)), w.book(draft(2, 1, 2))
	w.amend(rental.BookingStart, ends.ID, noon, beginAt(noon))
	w.opens(ends.ID, rental.EndRental, noon)
	lose.Store(true)
	if got, err := Lapse(t.Context(), behind.DB, 10); err != nil || len(got) != 1 || got[0].ID != lapses.ID || lose.Load() {
		t.Errorf("lapsed: %+v, %v; want booking %d although an answer was lost", got, err, lapses.ID)
	}
	d, err := w.here.BookingDetails(t.Context(), ends.ID)
	require.NoError(t, err)
	end, decided := *d.Transition, 0
	lose.Store(true)
	written, err := Transitions{behind.DB}.SettleTransition(t.Context(), &end, time.Minute,
		func(d rental.BookingDetails) (rental.Settlement, error) {
			decided++
			c, _, err := d.Close(noon, noon, 0)
			end.Succeed(noon)
			return rental.Settlement{Change: c}, err
		})
	if err != nil || !written || decided != 1 || end.State != rental.TransitionDone || lose.Load() {
		t.Errorf("settled %v after %d decisions, %v; want true after one", written, decided, err)
	}
	if d, err := w.here.BookingDetails(t.Context(), ends.ID); err != nil || d.State != rental.Completed ||
		d.Transition.State != rental.TransitionDone {
		t.Errorf("booking %s, transition %+v, %v", d.State, d.Transition, err)
	}
}

// A request is done, and is no repetition, although the answer of its commit was lost.
func TestRetryKeyed_WhatIsStoredIsAnswered(t *testing.T) {
	w := newRentalWorld(t)
	address, lose := lossy(t, w.address)
	behind := openPatient(t, address)
	_, err := settings.Installation(t.Context(), behind.DB)
	require.NoError(t, err)
	for vehicle, key := range map[telematics.VehicleID]string{1: "", 2: "tap"} {
		under := func(r rental.Request, what string) rental.Request {
			if key == "" {
				return r
			}
			return named(r, key+what, what)
		}
		lose.Store(true)
		made, replayed, err := behind.OpenBooking(t.Context(), draft(vehicle, 1, 2),
			under(asks(anna, rental.BookingCreate, 0, noon), "book"))
		if err != nil || replayed || made.ID == 0 || lose.Load() {
			t.Fatalf("key %q: booking %d, replayed %v, %v; want it made although an answer was lost", key, made.ID, replayed, err)
		}
		begin := under(asks(operator, rental.BookingStart, made.ID, noon), "begin")
		lose.Store(true)
		begun, replayed, err := behind.Amend(t.Context(), begin, beginAt(noon))
		if err != nil || replayed || begun.State != rental.Active || len(begun.Charges) != 2 || lose.Load() {
			t.Errorf("key %q: booking %s with %d charges, replayed %v, %v; want it started",
				key, begun.State, len(begun.Charges), replayed, err)
		}
		if _, replayed, err := behind.Amend(t.Context(), begin, beginAt(noon)); replayed != (key != "") || (err == nil) != replayed {
			t.Errorf("key %q: the same request: replayed %v, %v", key, replayed, err)
		}
	}
}

// by begins a transition at an instance, under a key.
func (d *drive) by(at *transitions.Runner, kind rental.TransitionKind, key string) (rental.Transition, error) {
	t, _, err := at.Open(d.t.Context(), rental.TransitionRequest{
		Request: named(asks(anna, rental.TransitionActivity(kind), d.id, time.Now()), key, key), Kind: kind,
	})
	return t, err
}

// Each call of an instance that carries a transition on is its last: it dies before the next one.
// Another instance, and a client who repeats the request, carry on: the rental is charged once, and
// each command executed once.
func TestTransitions_AnInstanceDiesBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	before := map[rental.TransitionKind][]rental.TransitionKind{
		rental.StartRental: nil, rental.PauseRental: {rental.StartRental},
		rental.ResumeRental: {rental.StartRental, rental.PauseRental}, rental.EndRental: {rental.StartRental},
	}
	actions := map[rental.TransitionKind]telematics.Action{
		rental.StartRental: telematics.UnlockAndEnableDriving, rental.PauseRental: telematics.Lock,
		rental.ResumeRental: telematics.Unlock, rental.EndRental: telematics.LockAndDisableDriving,
	}
	for kind, earlier := range before {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			d := newDrive(t, sandbox.Behaviour{})
			d.exec(`update bookings set state = 'cancelled'`) // each rental has its booking
			deaths := 0
			for died := true; died; deaths++ {
				m := &mortal{
					store: bothStores{Bookings{d.here.DB}, Transitions{d.here.DB}}, cars: newCars(), running: make(chan struct{}),
					left: deaths + 1,
				}
				died = d.withDeath(m, kind, slices.Clone(earlier), actions)
			}
			if deaths < 7 { // what opens a transition, orders its command and writes its end
				t.Errorf("the instance had only %d calls", deaths-1)
			}
		})
	}
}

// withDeath makes a rental with an instance that may die during one of its transitions, and reports
// whether it did.
func (d *drive) withDeath(
	m *mortal, kind rental.TransitionKind, kinds []rental.TransitionKind, actions map[rental.TransitionKind]telematics.Action,
) bool {
	d.t.Helper()
	*d.cars = cars{made: map[string]*telematics.Command{}, snapshot: m.snapshot, reported: time.Now()}
	m.cars, d.id = d.cars, d.bookNow()
	dying := newRunner(m, m, brief, nil)
	defer d.background(dying.Run)()
	<-m.running
	if kinds = append(kinds, kind); kind != rental.EndRental {
		kinds = append(kinds, rental.EndRental)
	}
	var want []telematics.Action
	for _, k := range kinds {
		want = append(want, actions[k])
		key, at := fmt.Sprintf("%d-%s", d.id, k), d.run[1]
		if k == kind {
			at = dying
		}
		made, err := d.by(at, k, key)
		if at == dying && err != nil {
			made, err = d.by(d.run[1], k, key)
		}
		require.NoError(d.t, err, "%s", k)
		if ended := d.await(made); ended.State != rental.TransitionDone {
			d.t.Errorf("%s is %s: %+v", k, ended.State, ended.Failure)
		}
	}
	d.wants(rental.Completed, 3300, 0)
	d.wantsActions(want...)
	if n := d.count(`select count(*) from transitions where booking_id = $1 and state = 'done'`, d.id); n != len(kinds) {
		d.t.Errorf("%d transitions are done, want %d", n, len(kinds))
	}
	return m.isDead()
}
