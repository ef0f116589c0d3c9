package broker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

var errDead = errors.New("this process is dead")

// link connects one instance to the stores. Calls fail as networks and servers do: before the work,
// after it, during it, or permanently.
type link struct {
	*interleaving
	dice *dice
	dead atomic.Bool
	of   *instance
	own  server // faults of Postgres for this instance only
}

// callFault is a fault of a store call.
type callFault int

const (
	done       callFault = iota
	refused              // an immediate error, nothing was done
	lost                 // the work was done, the answer was lost
	hung                 // nothing was done, no answer
	belated              // the work is done after the caller has given up
	slowAnswer           // the work was done, the answer is late
)

var callFaults = map[callFault]string{refused: "refused", lost: "answer lost", hung: "hung", belated: "belated", slowAnswer: "slow answer"}

// maybe is the result of a call, and whether there is one.
type maybe[T any] struct {
	value T
	ok    bool
}

// call makes one call to a server.
func call[T any](
	ctx context.Context, l *link, s *server, method string, id telematics.CommandID,
	work func(context.Context) (T, error),
) (T, error) {
	var none T
	if l.dead.Load() {
		return none, errDead
	}
	how := l.faultOf(s)
	if how != done {
		l.trouble(s, method, id, how, l.of)
	}
	if err := l.wait(ctx, how); err != nil {
		if l.dice.chance(0.5) { // the statement was sent before the process died or gave up
			l.excuse(id)
			_, _ = work(context.WithoutCancel(ctx))
		}
		return none, err
	}
	switch how {
	case refused:
		return none, errors.New("connection refused")
	case lost:
		_, _ = work(context.WithoutCancel(ctx))
		return none, errors.New("connection reset")
	case hung:
		<-ctx.Done()
		return none, ctx.Err()
	case belated:
		l.calls.Go(func() {
			time.Sleep(l.dice.within(0, 5*time.Second))
			_, _ = work(context.WithoutCancel(ctx))
		})
		<-ctx.Done()
		return none, ctx.Err()
	}
	result, err := work(ctx)
	if how == slowAnswer {
		select {
		case <-time.After(l.dice.within(time.Second, 2900*time.Millisecond)):
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	if l.dead.Load() {
		return none, errDead
	}
	return result, err
}

func (l *link) faultOf(s *server) callFault {
	if how := s.fault(); how != done {
		return how
	}
	if s == &l.postgres && l.own.fault() != done {
		return l.own.fault()
	}
	if !l.mended.Load() && l.dice.chance(l.faultRates.stores) {
		return oneOf(l.dice, refused, lost, hung, belated, slowAnswer)
	}
	return done
}

// wait waits for the duration of a network call.
func (l *link) wait(ctx context.Context, how callFault) error {
	took := l.dice.within(10*time.Microsecond, 3*time.Millisecond)
	if how == done && l.dice.chance(l.faultRates.slow) {
		took = l.dice.within(0, 500*time.Millisecond)
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.dead.Load() {
		return errDead
	}
	return nil
}

func (l *link) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return call(ctx, l, &l.postgres, "Twin", telematics.NoCommand, func(ctx context.Context) (telematics.Twin, error) {
		return l.memory.Twin(ctx, id)
	})
}

func (l *link) Resolve(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	if twin, cached := l.memory.Cached(id); cached {
		return &twin, nil
	}
	return call(ctx, l, &l.postgres, "Resolve", telematics.NoCommand, func(ctx context.Context) (*telematics.Twin, error) {
		twin, err := l.memory.Record(ctx, id)
		return &twin, err
	})
}

func (l *link) Claim(ctx context.Context, c *telematics.Command) (delivery.Claim, error) {
	claim, err := call(ctx, l, &l.postgres, "Claim", c.ID, func(ctx context.Context) (delivery.Claim, error) {
		return l.ledger.claim(ctx, *c)
	})
	if err != nil || claim.Stale {
		l.memory.Uncache(c.Vehicle)
	}
	return claim, err
}

func (l *link) FindByKey(ctx context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
	result, err := call(
		ctx, l, &l.postgres, "FindByKey", telematics.NoCommand,
		func(ctx context.Context) (maybe[delivery.KeyResult], error) {
			made, found, err := l.memory.Commands.FindByKey(ctx, k)
			return maybe[delivery.KeyResult]{made, found}, err
		},
	)
	return result.value, result.ok, err
}

func (l *link) StoreProgress(ctx context.Context, notes []delivery.Note) error {
	_, err := call(ctx, l, &l.postgres, "StoreProgress", notes[0].Command, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.ledger.noteAll(ctx, notes)
	})
	return err
}

func (l *link) Settle(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	result, err := call(ctx, l, &l.postgres, "Settle", s.Command, func(ctx context.Context) (maybe[*telematics.Command], error) {
		c, ok, err := l.ledger.settle(ctx, s)
		return maybe[*telematics.Command]{c, ok}, err
	})
	return result.value, result.ok, err
}

func (l *link) Updates(ctx context.Context, unanswered, received []telematics.CommandID) ([]telematics.Command, error) {
	return call(ctx, l, &l.postgres, "Updates", telematics.NoCommand, func(ctx context.Context) ([]telematics.Command, error) {
		return l.memory.Commands.Updates(ctx, unanswered, received)
	})
}

func (l *link) Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error) {
	return call(ctx, l, &l.postgres, "Overdue", telematics.NoCommand, func(ctx context.Context) ([]telematics.Command, error) {
		return l.memory.Commands.Overdue(ctx, before, limit)
	})
}

func (l *link) Unconfirmed(ctx context.Context, since time.Time, behind telematics.Command, limit int) ([]telematics.Command, error) {
	return call(ctx, l, &l.postgres, "Unconfirmed", telematics.NoCommand, func(ctx context.Context) ([]telematics.Command, error) {
		return l.memory.Commands.Unconfirmed(ctx, since, behind, limit)
	})
}

func (l *link) Conclude(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	result, err := call(ctx, l, &l.postgres, "Conclude", s.Command, func(ctx context.Context) (maybe[*telematics.Command], error) {
		c, ok, err := l.memory.Commands.Conclude(ctx, s)
		return maybe[*telematics.Command]{c, ok}, err
	})
	return result.value, result.ok, err
}

func (l *link) AnsweredBefore(ctx context.Context, c telematics.Command, limit int) ([]telematics.Command, error) {
	return call(ctx, l, &l.postgres, "AnsweredBefore", c.ID, func(ctx context.Context) ([]telematics.Command, error) {
		return l.memory.Commands.AnsweredBefore(ctx, c, limit)
	})
}

func (l *link) AwaitingAnswer(ctx context.Context, unit telematics.Unit) (telematics.Command, bool, error) {
	result, err := call(
		ctx, l, &l.postgres, "AwaitingAnswer", telematics.NoCommand,
		func(ctx context.Context) (maybe[telematics.Command], error) {
			c, found, err := l.memory.Commands.AwaitingAnswer(ctx, unit)
			return maybe[telematics.Command]{c, found}, err
		},
	)
	return result.value, result.ok, err
}

func (l *link) Halts(ctx context.Context) (telematics.Halts, error) {
	return call(ctx, l, &l.postgres, "Halts", telematics.NoCommand, l.memory.Halts)
}

// Time draws no random number.
func (l *link) Time(ctx context.Context) (time.Time, error) {
	if l.dead.Load() {
		return time.Time{}, errUnavailable
	}
	return l.memory.Time(ctx)
}

func (l *link) Add(ctx context.Context, entry telematics.Activity) error {
	id := entry.RequestID // the fault excuses the entries of this order
	_, err := call(ctx, l, &l.postgres, "Add", id, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.memory.Add(ctx, entry)
	})
	return err
}

func (l *link) Run(ctx context.Context, tell func([]telematics.Change)) error {
	return l.memory.Run(ctx, tell)
}

func (l *link) Observe(ctx context.Context, seen []delivery.Observation) (delivery.Seen, error) {
	return call(ctx, l, &l.postgres, "Observe", telematics.NoCommand, func(ctx context.Context) (delivery.Seen, error) {
		return l.memory.Observe(ctx, seen)
	})
}

func (l *link) Report(o delivery.Observation) func(context.Context) (delivery.Seen, error) {
	return brokertest.Report(l, o)
}

func (l *link) Register(p delivery.Pending) func(context.Context) error {
	return brokertest.Begin(func() error {
		// The limit of the store.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := call(ctx, l, &l.redis, "Register", p.Command, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, l.memory.Pending.Register(p)(ctx)
		})
		return err
	})
}

func (l *link) Lookup(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (delivery.Pending, bool, error) {
	result, err := call(ctx, l, &l.redis, "Lookup", telematics.NoCommand, func(ctx context.Context) (maybe[delivery.Pending], error) {
		p, found, err := l.memory.Pending.Lookup(ctx, unit, id)
		return maybe[delivery.Pending]{p, found}, err
	})
	return result.value, result.ok, err
}

func (l *link) Contains(ctx context.Context, entries []delivery.Pending) ([]bool, error) {
	return call(ctx, l, &l.redis, "Contains", telematics.NoCommand, func(ctx context.Context) ([]bool, error) {
		return l.memory.Pending.Contains(ctx, entries)
	})
}

func (l *link) Release(ctx context.Context, entries ...delivery.Pending) error {
	_, err := call(ctx, l, &l.redis, "Release", entries[0].Command, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.memory.Pending.Release(ctx, entries...)
	})
	if err != nil {
		for _, entry := range entries {
			l.excuse(entry.Command)
		}
	}
	return err
}

func (l *link) Wake(ctx context.Context, instance string, id telematics.CommandID) error {
	if l.dice.chance(l.faultRates.deaf) {
		l.count("wake-ups lost")
		return nil
	}
	_, err := call(ctx, l, &l.redis, "Wake", telematics.NoCommand, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.memory.Pending.Wake(ctx, instance, id)
	})
	return err
}

func (l *link) Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error {
	return l.memory.Pending.Listen(ctx, instance, wake)
}

// Aged and Publish concern no command: they have no faults.
func (l *link) Aged(context.Context) ([]telematics.Change, error) { return nil, nil }

func (l *link) Publish(context.Context, []telematics.Event) ([]telematics.Event, error) {
	return nil, nil
}
