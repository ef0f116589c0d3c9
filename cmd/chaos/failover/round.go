package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Config says what a round is like.
type Config struct {
	Seed      uint64
	Vehicles  int           // Defaults to 40
	Instances int           // Defaults to 2
	Behind    time.Duration // how far the standby is. Defaults to 3 s
	Load      time.Duration // before, and after. Defaults to 5 s
	Binary    string        // the motorpool program
	Dir       string        // an empty folder, which Postgres's account can enter
	Say       func(string)  // what the round is at. Defaults to silence
	Logger    *slog.Logger  // Defaults to silence
}

func (c Config) withDefaults() (Config, error) {
	c.Vehicles = cmp.Or(c.Vehicles, 40)
	c.Instances = cmp.Or(c.Instances, 2)
	c.Behind = cmp.Or(c.Behind, 3*time.Second)
	c.Load = cmp.Or(c.Load, 5*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Say == nil {
		c.Say = func(string) {}
	}
	if c.Behind > remembered*pace {
		return c, fmt.Errorf("the standby may be %v behind at most: a unit repeats its last %d results alone", remembered*pace, remembered)
	}
	return c, nil
}

// remembered is how many results a report repeats at most [TEL-3].
const remembered = 8

// settleWithin bounds how long answers to lost commands may take to be written down.
const settleWithin = 30 * time.Second

// Round builds a world, fails over, and judges. Its error says that the world itself broke.
func Round(ctx context.Context, c Config) (r Result, err error) {
	if c, err = c.withDefaults(); err != nil {
		return r, err
	}
	begin := time.Now()
	w := &world{Config: c}
	defer func() { err = errors.Join(err, w.tearDown()) }()
	r = Result{Config: c, Calls: map[string]int{}}
	if err := w.play(ctx, &r); err != nil {
		return r, err
	}
	r.Took = time.Since(begin)
	return r, nil
}

func (w *world) play(ctx context.Context, r *Result) error {
	w.Say(fmt.Sprintf("seed %d: starting servers, a standby, %d instances and %d cars", w.Seed, w.Instances, w.Vehicles))
	if err := w.build(ctx); err != nil {
		return err
	}
	count := func(answers map[string]int) {
		for answer, n := range answers {
			r.Calls[answer] += n
		}
	}
	w.Say(fmt.Sprintf("%v of load", w.Load))
	count(w.order(ctx, time.Now().Add(w.Load)))
	syncing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := w.standby.InSync(syncing, w.primary); err != nil {
		return err
	}
	w.Say(fmt.Sprintf("the standby is cut off; %v of load, then a failover to it", w.Behind))
	w.replication.point("")
	end := time.Now().Add(w.Behind)
	loaded := make(chan map[string]int, 1)
	go func() { loaded <- w.order(ctx, end) }()
	pause(ctx, w.Behind-pace/2) // commands are under way when it happens
	r.Failover = time.Now()
	if err := w.failOver(ctx); err != nil {
		return err
	}
	count(<-loaded)
	if err := w.ready(ctx); err != nil {
		return err
	}
	w.Say("waiting for the answers to lost commands") // before other results push them out of the last eight
	if err := w.settle(ctx, r); err != nil {
		return err
	}
	w.Say(fmt.Sprintf("%v of load on the promoted standby", w.Load))
	count(w.order(ctx, time.Now().Add(w.Load)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return w.settle(ctx, r)
}

// failOver kills the primary, promotes the standby, and leads the instances there.
func (w *world) failOver(ctx context.Context) error {
	if err := w.primary.Kill(); err != nil {
		return err
	}
	w.database.point("")
	if err := w.standby.Promote(ctx); err != nil {
		return err
	}
	w.database.point(hostOf(w.standby))
	return nil
}

// settle judges until no violation is left, or the time is over.
func (w *world) settle(ctx context.Context, r *Result) error {
	db, err := w.openDatabase()
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(settleWithin); ; pause(ctx, 200*time.Millisecond) {
		record, err := readRecord(ctx, db)
		if err != nil {
			return err
		}
		verdict := check(w.recorder.Events(), record, r.Failover)
		if len(verdict.Violations) == 0 || time.Now().After(end) || ctx.Err() != nil {
			r.Verdict = verdict
			return ctx.Err()
		}
	}
}
