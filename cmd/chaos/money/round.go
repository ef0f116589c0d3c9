package money

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"motorpool/simulator/sandbox"
)

// Config says what a round is like.
type Config struct {
	Seed      uint64
	Bookings  int
	Instances int           // Defaults to 3
	Duration  time.Duration // over which the bookings begin, and all is broken. Defaults to what ten bookings a second need, a quarter of a minute at least
	Binary    string        // the motorpool program
	Dir       string        // an empty folder, which Postgres's account can enter
	// Hurry has waits of the record end early, once all is healed: leases of workers that died, and pauses between two tries. Else
	// the round takes the minutes that they take.
	Hurry  bool
	Say    func(string) // what the round is at. Defaults to silence
	Logger *slog.Logger // every fault. Defaults to silence
}

const (
	bookingsASecond = 10
	shortest        = 15 * time.Second
)

func (c Config) withDefaults() (Config, error) {
	c.Instances = cmp.Or(c.Instances, 3)
	c.Duration = cmp.Or(c.Duration, max(shortest, time.Duration(c.Bookings)*time.Second/bookingsASecond))
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Say == nil {
		c.Say = func(string) {}
	}
	switch {
	case c.Bookings < 20:
		return c, errors.New("a round of money needs 20 bookings, or more: every kind of call must be there")
	case c.Instances < 2:
		return c, errors.New("a round of money needs two instances, or more: they must take charges over from one another")
	}
	return c, nil
}

// Round builds a world, breaks it, heals it, and judges. Its error says that the world itself broke.
func Round(ctx context.Context, c Config) (r Result, err error) {
	if c, err = c.withDefaults(); err != nil {
		return r, err
	}
	begin := time.Now()
	ctx, fall := context.WithCancelCause(ctx)
	defer fall(nil)
	w := &world{Config: c, fall: fall, figures: newFigures()}
	defer func() {
		err = errors.Join(err, w.tearDown())
	}()
	if err := w.play(ctx, &r); err != nil {
		return r, cmp.Or(context.Cause(ctx), err)
	}
	r.Config, r.Took = c, time.Since(begin)
	return r, nil
}

func (w *world) play(ctx context.Context, r *Result) error {
	w.Say(fmt.Sprintf("seed %d: starting servers and %d instances; %d bookings", w.Seed, w.Instances, w.Bookings))
	if err := w.build(ctx); err != nil {
		return err
	}
	w.Say(fmt.Sprintf("%v of load, while everything is killed", w.Duration))
	begin := time.Now()
	broken := make(chan struct{})
	go func() { defer close(broken); w.rampage(ctx) }()
	w.drive(ctx)
	<-broken
	r.Load = time.Since(begin)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.Say("all is healed: waiting until nothing is due")
	begin = time.Now()
	if err := w.settle(ctx); err != nil {
		return err
	}
	r.Settling, r.Deeds = time.Since(begin), w.deeds()
	var err error
	if r.Record, err = w.read(ctx); err != nil {
		return err
	}
	r.Ledger = w.processor.Ledger()
	r.Fired = w.processor.Fired()
	r.Figures = w.figures.all()
	r.Report = Check(r.Evidence)
	return nil
}

// Result is a round.
type Result struct {
	Config Config
	Evidence
	Fired    map[sandbox.FaultKind]int
	Figures  map[string]map[string]int
	Load     time.Duration
	Settling time.Duration
	Took     time.Duration
	Report   Report
}
