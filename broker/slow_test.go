package broker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/broker/ingest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// tampering replaces calls of an instance to its ports. A nil function leaves the call as it is.
type tampering struct {
	broker.Commands
	broker.PendingTable
	ingest.Twins
	broker.Events
	claim    func(context.Context, telematics.Command) (delivery.Claim, error)
	register func(delivery.Pending) error
	settle   func(context.Context, delivery.Settlement) (*telematics.Command, bool, error)
	observe  func(context.Context, []delivery.Observation) (delivery.Seen, error)
	hang     atomic.Bool // makes Publish of events hang
}

func (x *tampering) Publish(ctx context.Context, events []telematics.Event) ([]telematics.Event, error) {
	if x.hang.Load() {
		<-ctx.Done()
		return events, ctx.Err()
	}
	return x.Events.Publish(ctx, events)
}

func (x *tampering) Claim(ctx context.Context, c *telematics.Command) (delivery.Claim, error) {
	if x.claim != nil {
		return x.claim(ctx, *c)
	}
	return x.Commands.Claim(ctx, c)
}

func (x *tampering) Register(p delivery.Pending) func(context.Context) error {
	if x.register != nil {
		return brokertest.Begin(func() error { return x.register(p) })
	}
	return x.PendingTable.Register(p)
}

func (x *tampering) Settle(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	if x.settle != nil {
		return x.settle(ctx, s)
	}
	return x.Commands.Settle(ctx, s)
}

func (x *tampering) Observe(ctx context.Context, seen []delivery.Observation) (delivery.Seen, error) {
	if x.observe != nil {
		return x.observe(ctx, seen)
	}
	return x.Twins.Observe(ctx, seen)
}

func (x *tampering) wire(_ *brokertest.Memory, c *broker.Config) {
	x.Commands, x.PendingTable, x.Twins, x.Events = c.Commands, c.Pending, c.Twins, c.Events
	c.Commands, c.Pending, c.Twins, c.Events = x, x, x, x
}

// between returns the wiring of an instance for each tampering.
func between(tampers ...*tampering) []wiring {
	var wirings []wiring
	for _, x := range tampers {
		wirings = append(wirings, x.wire)
	}
	return wirings
}

// wantOutcome compares the reply to a caller with the record and the audit log.
func (w *world) wantOutcome(id telematics.CommandID, reply telematics.Outcome) {
	w.Helper()
	if got := w.record(id).State; got.Outcome() != reply {
		w.Errorf("the reply says %s, the record says %s", reply, got)
	}
	for _, line := range w.Entries() {
		if line.Command == id && line.Outcome != reply {
			w.Errorf("the reply says %s, the audit log says %s", reply, line.Outcome)
		}
	}
}

func TestSlow_ReceiptOfStartDoesNotChange(t *testing.T) {
	away := &tampering{settle: func(context.Context, delivery.Settlement) (*telematics.Command, bool, error) {
		return nil, false, errors.New("the record is unavailable")
	}}
	inWorldOf(t, between(away), func(w *world) {
		r, err := w.brokers[0].Start(w.Context(), new(w.order(telematics.Lock)))
		require.NoError(t, err)
		require.NoError(t, w.brokers[0].Drain(w.Context()))
		if r.Command.State != telematics.Accepted || !r.Command.Completed.IsZero() {
			t.Errorf("the receipt has %+v, want the command as accepted", r.Command)
		}
	})
}

func TestSlow_RegistrationBeyondTheDeadlineIsNotSweptByItsInstance(t *testing.T) {
	const hangs = 10 * time.Second // longer than any caller waits
	x := &tampering{register: func(delivery.Pending) error {
		time.Sleep(hangs)
		return nil
	}}
	inWorldOf(t, between(x), func(w *world) {
		time.Sleep(500 * time.Millisecond)
		order := w.order(telematics.Lock)
		order.Budget = telematics.MinBudget
		c, err := w.sendVia(0, order)
		w.wantCode(err, telematics.TelematicsUnavailable)
		w.wantOutcome(c.ID, telematics.NotExecuted)
		time.Sleep(hangs)
	})
}

func TestSlow_ClaimThatFindsItselfAsOccupantSucceeds(t *testing.T) {
	for _, key := range []*telematics.IdempotencyKey{nil, brokertest.NewKey()} {
		x := &tampering{}
		x.claim = func(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
			if claim, err := x.Commands.Claim(ctx, &c); err != nil || claim.Occupant != nil {
				return claim, err
			}
			return x.Commands.Claim(ctx, &c) // as a driver does that lost the reply
		}
		inWorldOf(t, between(x), func(w *world) {
			w.answers(0, time.Second, telematics.Succeeded)
			order := w.order(telematics.Lock)
			order.Idempotency = key
			_, err := w.sendVia(0, order)
			w.wantCode(err, "")
		})
	}
}

// A failover of Postgres may lose the row: this process knows all the same that nothing was sent.
func TestSlow_CommandThatIsNotOnRecordWasNotSent(t *testing.T) {
	x := &tampering{claim: func(context.Context, telematics.Command) (delivery.Claim, error) { return delivery.Claim{Seq: 1}, nil }}
	inWorldOf(t, between(x), func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		assert.Equal(t, c.State, telematics.Expired, "the state of a command that was never sent")
	})
}

func TestSlow_VehicleDeletedBeforeTheClaimIsNotFound(t *testing.T) {
	x := &tampering{claim: func(_ context.Context, c telematics.Command) (delivery.Claim, error) {
		return delivery.Claim{}, telematics.NoSuchVehicle(c.Vehicle)
	}}
	inWorldOf(t, between(x), func(w *world) {
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.VehicleNotFound)
	})
}

func TestSlow_NothingIsPublishedAfterTheDeadline(t *testing.T) {
	x := &tampering{}
	x.register = func(p delivery.Pending) error {
		time.Sleep(time.Until(p.Deadline) + 300*time.Millisecond)
		return x.PendingTable.Register(p)(context.Background())
	}
	inWorldOf(t, between(x), func(w *world) {
		// Then the expiry, in whole seconds, is long after the deadline.
		time.Sleep(50 * time.Millisecond)
		order := w.order(telematics.Lock)
		order.Budget = telematics.MinBudget
		_, err := w.sendVia(0, order)
		w.wantCode(err, telematics.TelematicsUnavailable)
		assert.Equal(t, len(w.mqtt.published()), 0, "messages published after the deadline")
	})
}

// others adds vehicles, and returns an order for each.
func (w *world) others(n int) []delivery.Order {
	var orders []delivery.Order
	for i := range n {
		twin := healthy()
		twin.ID, twin.Unit = telematics.VehicleID(1000+i), telematics.Unit(uuid.NewString())
		w.Put(twin)
		order := w.order(telematics.Lock)
		order.Vehicle = twin.ID
		orders = append(orders, order)
	}
	return orders
}

// sendAll sends orders concurrently, and returns how often each code was returned, and the longest
// wait.
func (w *world) sendAll(orders []delivery.Order) (codes map[telematics.Code]int, worst time.Duration) {
	codes = map[telematics.Code]int{}
	var mu sync.Mutex
	var callers sync.WaitGroup
	for _, order := range orders {
		callers.Go(func() {
			start := time.Now()
			_, err := w.sendVia(0, order)
			mu.Lock()
			defer mu.Unlock()
			worst = max(worst, time.Since(start))
			if err == nil {
				codes[""]++
			} else {
				codes[err.Code]++
			}
		})
	}
	callers.Wait()
	return codes, worst
}

func TestSlow_ManyCommandsOfADeadInstanceAreSettledInTime(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		const n = 1500 // more than four passes of the sweeper take
		for _, order := range w.others(n) {
			now := time.Now()
			_, err := w.Commands.Claim(w.Context(), &telematics.Command{
				ID: uuid.New(), Vehicle: order.Vehicle, Agency: 1, Unit: unit, Action: telematics.Lock, Lane: telematics.AccessLane,
				Instance: "gone", Actor: admin, State: telematics.Accepted, Requested: now, Deadline: now.Add(10 * time.Second),
			})
			require.NoError(w, err)
		}
		time.Sleep(15 * time.Second) // the budget and 5 s [LAW-6]
		open, err := w.Commands.Overdue(w.Context(), time.Now(), n)
		if err != nil || len(open) > 0 {
			t.Errorf("%d of %d commands are open, error %v; want none", len(open), n, err)
		}
	})
}

func TestSlow_LockedRowOfAVehicleDelaysNoOtherAnswers(t *testing.T) {
	x := &tampering{}
	x.observe = func(ctx context.Context, seen []delivery.Observation) (delivery.Seen, error) {
		for _, o := range seen {
			if o.Unit == unit { // its row is locked by another transaction
				<-ctx.Done()
				return delivery.Seen{}, ctx.Err()
			}
		}
		return x.Twins.Observe(ctx, seen)
	}
	inWorldOf(t, between(x), func(w *world) {
		done := func(id telematics.CommandID) telematics.Answer {
			return telematics.Answer{Command: id, State: telematics.Succeeded, At: time.Now(),
				Report: &telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.IsLocked: true}}}
		}
		enough := make(chan struct{})
		var flood sync.WaitGroup
		flood.Go(func() {
			for {
				select {
				case <-enough:
					return
				case <-time.After(25 * time.Millisecond):
					w.answer(0, unit, done(uuid.New()))
				}
			}
		})
		w.mqtt.car = func(p publication) {
			time.Sleep(time.Second)
			w.answer(0, p.claims.Unit, done(p.claims.Command))
		}
		time.Sleep(10 * time.Second)
		codes, worst := w.sendAll(w.others(50))
		close(enough)
		flood.Wait()
		if codes[""] != 50 || worst > 2*time.Second {
			t.Errorf("50 other cars that answer after 1 s: codes %v, longest wait %v; want 50 successes within 2 s", codes, worst)
		}
	})
}

func TestStop_SettlesReceivedAnswers(t *testing.T) {
	stopping := &tampering{}
	stopping.settle = func(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
		select {
		case <-time.After(50 * time.Millisecond): // the time of a slow commit
			return stopping.Commands.Settle(ctx, s)
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	inWorldOf(t, between(&tampering{}, stopping), func(w *world) {
		begin := time.Now()
		w.mqtt.car = func(p publication) {
			if time.Since(begin) < time.Second { // else it is a repetition
				time.Sleep(time.Until(begin.Add(5 * time.Second)))
				w.answer(1, p.claims.Unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
			}
		}
		time.AfterFunc(5005*time.Millisecond, w.stops[1])
		const n = 300 // more than one worker alone could settle in a step's time
		if codes, _ := w.sendAll(w.others(n)); codes[""] != n {
			t.Errorf("codes %v: answers that a stopping instance had received were lost", codes)
		}
	})
}

func TestStop_SettlesReceivedLateAnswers(t *testing.T) {
	x := &tampering{}
	x.settle = func(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
		select {
		case <-time.After(20 * time.Millisecond): // the time of a commit
			return x.Commands.Settle(ctx, s)
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	inWorldOf(t, between(x), func(w *world) {
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		for range 30 { // more than can be settled concurrently, before the one that counts
			w.answer(0, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
		}
		time.Sleep(time.Millisecond)
		w.answer(0, unit, telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
		time.Sleep(time.Millisecond)
		w.stops[0]()
		if got := w.record(c.ID); got.State != telematics.Succeeded || !got.Late {
			t.Errorf("the late answer that a stopping instance had received was lost: state %s", got.State)
		}
	})
}

func TestStop_StoresReceivedReports(t *testing.T) {
	x := &tampering{}
	x.observe = func(ctx context.Context, seen []delivery.Observation) (delivery.Seen, error) {
		select {
		case <-time.After(20 * time.Millisecond): // the time of a commit
			return x.Twins.Observe(ctx, seen)
		case <-ctx.Done():
			return delivery.Seen{}, ctx.Err()
		}
	}
	inWorldOf(t, between(x), func(w *world) {
		for i := range 3 { // each in a separate batch
			at := time.Now()
			w.reports(0, telematics.Report{At: at, Values: map[telematics.Field]any{telematics.SpeedKmh: float64(i)}})
			time.Sleep(time.Millisecond)
		}
		w.stops[0]()
		twin, err := w.Twin(w.Context(), car)
		require.NoError(w, err)
		if speed := twin.Snapshot.Number(telematics.SpeedKmh); speed == nil || *speed != 2 {
			t.Errorf("the last speed is %v, want 2: a report that was received is lost", speed)
		}
	})
}

func TestPendingTable_EmptiedOnlyDelaysAnswers(t *testing.T) {
	slow := func(x *tampering) *tampering {
		x.settle = func(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
			time.Sleep(40 * time.Millisecond) // the time of a slow commit
			return x.Commands.Settle(ctx, s)
		}
		return x
	}
	inWorldOf(t, between(slow(&tampering{}), slow(&tampering{})), func(w *world) {
		w.mqtt.car = func(p publication) {
			time.Sleep(3 * time.Second)
			w.answer(1, p.claims.Unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
		}
		time.AfterFunc(time.Second, w.Pending.Flush)
		if codes, _ := w.sendAll(w.others(250)); codes[""] != 250 {
			t.Errorf("250 cars that answer after 3 s: codes %v, want 250 successes", codes)
		}
	})
}

// hangingTable is a pending table whose server accepts requests and does not answer.
type hangingTable struct{ broker.PendingTable }

func (hangingTable) Lookup(ctx context.Context, _ telematics.Unit, _ telematics.CommandID) (delivery.Pending, bool, error) {
	<-ctx.Done()
	return delivery.Pending{}, false, ctx.Err()
}

func (hangingTable) Wake(ctx context.Context, _ string, _ telematics.CommandID) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestPendingTable_HangingDelaysAnswersOnlyBriefly(t *testing.T) {
	hanging := func(_ *brokertest.Memory, c *broker.Config) { c.Pending = hangingTable{c.Pending} }
	inWorldOf(t, []wiring{nil, hanging}, func(w *world) {
		w.answers(1, 100*time.Millisecond, telematics.Succeeded)
		start := time.Now()
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		// The time limit of the lookup, and the poll of the record, since there is no wake-up.
		if took := time.Since(start); took > 1500*time.Millisecond {
			t.Errorf("the answer took %v, want at most 1.5 s", took)
		}
		time.Sleep(5 * time.Second) // until the hanging wake-up ends
	})
}
