// Package transitions starts, pauses, resumes and ends rentals: payment, command and booking, each
// once, whatever fails. A transition is a row whose steps any instance takes.
//
//	start:   pay ─► command ─► booked          pause, resume, end: command ─► booked
//	          │        ├─ not executed ─► refund ─► failed
//	          │        └─ unknown ─► confirm ─► booked, or undo (lock) ─► refund ─► failed
//	          └─ refused ─► refund ─► failed
//
// Each step may be repeated: charges are written with the transition, a command has the idempotency
// key of its attempt, and the booking changes with the end of the transition.
package transitions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Store keeps transitions. Where a comment names no error, the error is the store's.
type Store interface {
	// BookingDetails returns a booking, or a *telematics.Error with rental.BookingNotFound.
	BookingDetails(context.Context, rental.BookingID) (rental.BookingDetails, error)
	// Transition returns a transition, or a *telematics.Error with rental.TransitionNotFound.
	Transition(context.Context, rental.TransitionID) (rental.Transition, error)
	// RequestedWith returns the transition that an earlier request with an idempotency key began or
	// joined. It fails with IdempotencyMismatch.
	RequestedWith(context.Context, *telematics.IdempotencyKey) (rental.Transition, bool, error)
	// OpenTransition writes a transition, whose lease the caller then has, and the change that
	// decide returns. It returns true if an earlier request with the same key did so. It fails with
	// rental.BookingNotFound, also of a booking that is hidden from the actor, and with the errors
	// of decide.
	OpenTransition(
		ctx context.Context, r rental.Request, t rental.Transition, lease time.Duration, decide rental.Decision,
	) (replayed bool, err error)
	// TakeTransitions leases due transitions.
	TakeTransitions(ctx context.Context, limit int, lease time.Duration) ([]rental.Transition, error)
	// WriteTransition writes a transition: with a wait it ends the lease until then, else it
	// extends it. It returns false if the lease was lost.
	WriteTransition(ctx context.Context, t rental.Transition, lease, wait time.Duration) (bool, error)
	// SettleTransition is WriteTransition with a change of the booking, which decide returns, in
	// one transaction. It fails with the errors of decide.
	SettleTransition(
		ctx context.Context, t *rental.Transition, lease time.Duration, decide func(rental.BookingDetails) (rental.Settlement, error),
	) (bool, error)
	// Wish calls decide with a transition of the request's booking, and stores what it wants of it,
	// which is due then, with the audit log entry of that activity, if there is one. It returns
	// true if an earlier request with the same key did so. It fails with rental.TransitionNotFound,
	// and with the errors of decide.
	Wish(
		ctx context.Context, r rental.Request, id rental.TransitionID, decide func(*rental.Transition) (activity string, err error),
	) (_ rental.Transition, replayed bool, err error)
}

// Cars sends commands to vehicles, and reads what they report.
type Cars interface {
	// Twin returns the vehicle with its reported state, or a *telematics.Error.
	Twin(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Send blocks until a command is settled. Its error is a *telematics.Error. An order with the
	// idempotency key of an earlier one gets the result of that one.
	Send(context.Context, *delivery.Order) (delivery.Receipt, error)
	// Refusal returns why a command would be refused now; nil: it would not be.
	Refusal(context.Context, *telematics.Twin, telematics.Action) *telematics.Error
	// Command returns a command as it is on record, or a *telematics.Error.
	Command(context.Context, telematics.CommandID) (telematics.Command, error)
}

// Config assembles a runner. Store and Cars are required.
type Config struct {
	Store Store
	Cars  Cars
	Areas rental.Areas // nil: no agency has areas
	// Nudge has charges collected now; nil: they are collected within a second.
	Nudge func()
	// Publish publishes the event of a transition that has changed; nil: none is published.
	Publish func(rental.BookingDetails, rental.Transition)

	Batch   int           // due transitions that are leased together. Defaults to 32.
	Lease   time.Duration // of a transition. Defaults to 30 s.
	Every   time.Duration // between two queries for due transitions. Defaults to 1 s.
	Budget  time.Duration // of a command. Defaults to telematics.DefaultBudget.
	Waits   Waits         // Defaults to DefaultWaits.
	Logger  *slog.Logger  // Defaults to slog.Default().
	Now     func() time.Time
	Metrics prometheus.Registerer // Defaults to a new registry.
	Guard   *guard.Guard
}

// Runner takes the steps of transitions. Any number of runners may share one database. It is safe
// for concurrent use.
type Runner struct {
	Config
	metrics *metrics
	hint    chan struct{}
	workers sync.WaitGroup

	mu      sync.Mutex
	work    func(rental.Transition) // starts a worker; nil: Run does not run
	waiters map[rental.TransitionID][]chan rental.Transition
	paying  map[rental.BookingID]chan struct{} // starts that wait for their payment here
}

// New assembles a runner.
func New(c Config) *Runner {
	c.Batch, c.Lease, c.Every = cmp.Or(c.Batch, 32), cmp.Or(c.Lease, leaseFor), cmp.Or(c.Every, time.Second)
	c.Waits = cmp.Or(c.Waits, DefaultWaits)
	c.Budget, c.Logger = cmp.Or(c.Budget, telematics.DefaultBudget), cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	return &Runner{
		Config: c, metrics: newMetrics(c.Metrics), hint: make(chan struct{}, 1),
		waiters: map[rental.TransitionID][]chan rental.Transition{}, paying: map[rental.BookingID]chan struct{}{},
	}
}

// Open begins a transition, whose steps are taken in the background. It returns true if an earlier
// request with the same idempotency key has begun or joined it. A request for one that is open
// joins that: see rental.Transition.Join.
//
// It fails with a *telematics.Error, or a *rental.ReturnRefusal, where nothing was begun.
func (r *Runner) Open(ctx context.Context, q rental.TransitionRequest) (rental.Transition, bool, error) {
	if earlier, made, err := r.Store.RequestedWith(ctx, q.Key); err != nil || made {
		return earlier, made, err
	}
	d, err := r.visible(ctx, q.Request)
	if err != nil {
		return rental.Transition{}, false, err
	}
	joins := hasOpen(d, q.Kind)
	if !joins {
		if q.Override != "" && q.Kind != rental.EndRental {
			return rental.Transition{}, false, rental.NothingToOverride()
		}
		if _, err := d.Open(q.Now, q.Kind, q.Actor.Role); err != nil {
			return rental.Transition{}, false, err
		}
	}
	if q.Admit != nil {
		if err := q.Admit(d); err != nil {
			return rental.Transition{}, false, err
		}
	}
	q.Activity.Agency, q.Activity.Note = d.Agency, q.Override
	if joins {
		return r.join(ctx, q, d)
	}
	twin, err := r.Cars.Twin(ctx, d.VehicleID)
	if err != nil {
		return rental.Transition{}, false, err
	}
	t := rental.Transition{
		ID: uuid.Must(uuid.NewV7()), Booking: d.ID, Vehicle: d.VehicleID, Kind: q.Kind, By: q.Actor,
		State: rental.TransitionOpen, Step: firstStep(q.Kind),
		Requested: q.Now, Lease: uuid.New(),
		Progress: rental.Progress{RequestID: q.Activity.RequestID, Override: q.Override, Since: q.Now},
	}
	if t.Checks, err = r.check(ctx, q, d, &twin); err != nil {
		return rental.Transition{}, false, err
	}
	t.LockedBefore, t.OnBefore = twin.Snapshot.Flag(telematics.IsLocked), isOn(twin.Snapshot)
	t.Metres, t.MetresAt = odometer(twin.Snapshot), twin.Snapshot.Of(telematics.MileageKm).At
	if last := d.Transition; last != nil {
		t.PauseMetres, t.PauseMetresAt = last.PauseMetres, last.PauseMetresAt
		if last.Kind == rental.PauseRental {
			t.PauseMetres, t.PauseMetresAt = last.Metres, last.MetresAt
		}
	}
	replayed, err := r.Store.OpenTransition(ctx, q.Request, t, r.Lease, func(d rental.BookingDetails) (rental.Change, error) {
		if d.VehicleID != t.Vehicle { // it was not checked, and the client stands at the former one
			return rental.Change{}, rental.HasMoved()
		}
		return d.Open(q.Now, q.Kind, q.Actor.Role)
	})
	if err != nil && asError(err).Code == rental.TransitionIsOpen {
		// A concurrent request came first.
		if d, err := r.visible(ctx, q.Request); err == nil && hasOpen(d, q.Kind) {
			return r.join(ctx, q, d)
		}
	}
	if err != nil {
		return rental.Transition{}, false, err
	}
	if replayed {
		return r.requestedBefore(ctx, q.Key)
	}
	r.metrics.opened.WithLabelValues(string(t.Kind)).Inc()
	r.publish(d, t)
	if q.Kind == rental.StartRental && r.Nudge != nil {
		r.Nudge()
	}
	r.start(t)
	return t, false, nil
}

// odometer returns what the odometer says, in metres; 0: not known.
func odometer(s telematics.Snapshot) int64 {
	if km := s.Number(telematics.MileageKm); km != nil {
		return int64(math.Round(*km * 1000))
	}
	return 0
}

// requestedBefore returns the transition that a concurrent request with the same key has begun or
// joined.
func (r *Runner) requestedBefore(ctx context.Context, key *telematics.IdempotencyKey) (rental.Transition, bool, error) {
	t, found, err := r.Store.RequestedWith(ctx, key)
	if err == nil && !found {
		err = telematics.StillOpen(telematics.NoCommand)
	}
	return t, found, err
}

func firstStep(k rental.TransitionKind) rental.TransitionStep {
	if k == rental.StartRental {
		return rental.StepPay
	}
	return rental.StepCommand
}

func (r *Runner) visible(ctx context.Context, q rental.Request) (rental.BookingDetails, error) {
	d, err := r.Store.BookingDetails(ctx, q.Booking)
	if err == nil && !d.VisibleTo(q.Actor) {
		return rental.BookingDetails{}, rental.NoSuchBooking(q.Booking)
	}
	return d, err
}

// hasOpen reports whether a transition of a kind is open.
func hasOpen(d rental.BookingDetails, k rental.TransitionKind) bool {
	return d.Transition != nil && d.Transition.State == rental.TransitionOpen && d.Transition.Kind == k
}

// join returns the open transition that a request means, and stores what the request wants of it.
func (r *Runner) join(ctx context.Context, q rental.TransitionRequest, d rental.BookingDetails) (rental.Transition, bool, error) {
	if err := r.checkJoin(ctx, q, d); err != nil {
		return rental.Transition{}, false, err
	}
	t, replayed, err := r.Store.Wish(ctx, q.Request, d.Transition.ID, func(t *rental.Transition) (string, error) {
		return t.Join(q.Override)
	})
	if err == nil && replayed {
		return r.requestedBefore(ctx, q.Key)
	}
	r.wake()
	return t, false, err
}

// Cancel gives up a start, and returns it. It returns true if an earlier request with the same
// idempotency key did so. It fails with a *telematics.Error: see rental.Transition.Cancel.
func (r *Runner) Cancel(ctx context.Context, q rental.Request, id rental.TransitionID) (rental.Transition, bool, error) {
	d, err := r.visible(ctx, q)
	if err != nil {
		return rental.Transition{}, false, err
	}
	q.Activity.Agency = d.Agency
	t, replayed, err := r.Store.Wish(ctx, q, id, (*rental.Transition).Cancel)
	r.wake()
	return t, replayed, err
}

func (r *Runner) wake() {
	select {
	case r.hint <- struct{}{}:
	default: // the hint is set already
	}
}

// start starts a worker for a leased transition. Where Run does not run, the transition is due
// again when its lease has expired.
func (r *Runner) start(t rental.Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.work != nil {
		r.work(t)
	}
}

// Run takes the steps of due transitions until the context ends, and then waits for those in
// flight, for a command's budget at most. It returns nil. Unfinished ones are due again when their
// lease has expired. It may run again afterwards.
func (r *Runner) Run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	r.setWork(func(t rental.Transition) {
		r.workers.Go(func() {
			_ = r.Guard.Do("take steps of transition", func() { newWorker(r, t).run(working) })
		})
	})
	tick := time.NewTicker(r.Every)
	defer tick.Stop()
	var outage guard.Outage
	for ctx.Err() == nil {
		due, err := r.Store.TakeTransitions(ctx, r.Batch, r.Lease)
		outage.Note(ctx, r.Logger, "due transitions not read", err)
		for _, t := range due {
			r.start(t)
		}
		if len(due) == r.Batch {
			continue // there may be more
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-r.hint:
		}
	}
	r.setWork(nil)
	over := time.AfterFunc(r.Budget+time.Second, stop)
	defer over.Stop()
	r.workers.Wait()
	return nil
}

func (r *Runner) setWork(work func(rental.Transition)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work = work
}

// asError returns an error of the cars as one with a code.
func asError(err error) *telematics.Error {
	if known, ok := errors.AsType[*telematics.Error](err); ok {
		return known
	}
	return telematics.Unavailable("The service", err)
}
