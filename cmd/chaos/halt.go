package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/service"
	"motorpool/telematics"
)

// agencies is how many the vehicles belong to: a halt of one must not touch those of the other.
const agencies = 2

// agencyOf gives each agency cars of every kind of profile.
func agencyOf(car int) telematics.AgencyID { return telematics.AgencyID(1 + car/10%agencies) }

// haltOf names what a halt is of; zero is all.
func haltOf(agency telematics.AgencyID) string {
	if agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", agency)
}

func halts(_ plan, rng *rand.Rand) string { return haltOf(telematics.AgencyID(rng.IntN(agencies + 1))) }

func agencyNamed(target string) telematics.AgencyID {
	for agency := range telematics.AgencyID(agencies + 1) {
		if haltOf(agency) == target {
			return agency
		}
	}
	panic("there is no " + target)
}

const (
	// haltLength is what a halt lasts at least: long enough that a command which was on the air before would be sent
	// again while the halt holds everywhere.
	haltLength = 6 * time.Second
	// operatorPatience is how long the operator tries again what failed because something was away.
	operatorPatience = time.Minute
	operatorRetry    = 500 * time.Millisecond
)

// haltCommands has the operator halt commands, and resume. While Postgres is away neither can be written down; the
// operator tries again until it is, and the halt lasts from then on.
func (w *world) haltCommands(ctx context.Context, f fault) error {
	agency := agencyNamed(f.Target)
	halt := audit.Halt{Agency: agency}
	d := newDraw(w.Seed, int(f.At), w.Vehicles, w.Instances)
	if err := service.Eventually(ctx, operatorPatience, "commands halted", func(trying context.Context) bool {
		w.orderUnanswered(ctx, d, agency) // the callers outlive the try
		halt.Written = w.writeHalt(trying, agency)
		return succeeded(trying, !halt.Written.IsZero())
	}); err != nil {
		return err
	}
	pause(ctx, time.Until(halt.Written.Add(f.For)))
	halt.Lifting = time.Now()
	w.halts.note(halt)
	return service.Eventually(ctx, operatorPatience, "commands resumed", func(ctx context.Context) bool {
		said, err := w.operate(ctx, nil, append([]string{"resume", "--direct"}, flagOf(agency)...)...)
		return succeeded(ctx, err == nil || strings.Contains(said, "there is no halt of")) // an earlier try did it, whose answer was lost
	})
}

// succeeded lets the operator take a breath before trying again.
func succeeded(ctx context.Context, is bool) bool {
	if !is {
		pause(ctx, operatorRetry)
	}
	return is
}

// orderUnanswered has commands under way, in every lane of the cars that are silent, which would be sent again and again
// during the halt, if nothing stopped them.
func (w *world) orderUnanswered(ctx context.Context, d *draw, agency telematics.AgencyID) {
	for car := 1; car <= w.Vehicles; car++ {
		if profileOf(car).Name != "silent" || agency != 0 && agencyOf(car) != agency {
			continue
		}
		for _, action := range []telematics.Action{telematics.Lock, telematics.OpenTopCase, telematics.AttentionSignal} {
			o, id := order{car: car, action: action, prefer: "wait=9", instance: d.rng.IntN(w.Instances)}, d.id()
			w.load.errands.Go(func() { w.load.note(w.call(ctx, o, id, o.instance, callTimeout)) })
		}
	}
}

// writeHalt returns when a halt was surely written down; zero: it may not have been.
func (w *world) writeHalt(ctx context.Context, agency telematics.AgencyID) time.Time {
	heard := &writtenDown{}
	if _, err := w.operate(ctx, heard, append([]string{"halt", "--direct", "--why", "chaos"}, flagOf(agency)...)...); err != nil {
		w.log.Info("not halted", "err", err)
	}
	return heard.at
}

func flagOf(agency telematics.AgencyID) []string {
	if agency == 0 {
		return nil
	}
	return []string{"--agency", fmt.Sprint(agency)}
}

// writtenDown notes when the operator's program says so.
type writtenDown struct {
	text bytes.Buffer
	at   time.Time
}

func (w *writtenDown) Write(p []byte) (int, error) {
	if w.text.Write(p); w.at.IsZero() && strings.Contains(w.text.String(), "written down") {
		w.at = time.Now()
	}
	return len(p), nil
}

// haltLog is the halts of a round.
type haltLog struct {
	mu  sync.Mutex // guards all
	all []audit.Halt
}

func (l *haltLog) note(h audit.Halt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, h)
}
