package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/telematics"
)

// haltedAgency is the agency of a halt; zero: all.
func haltedAgency(target string) telematics.AgencyID {
	for agency := range Agencies + 1 {
		if Halt(agency) == target {
			return telematics.AgencyID(agency)
		}
	}
	panic("no halt is called " + target)
}

const (
	// operatorTimeout is how long the operator retries what failed because a server was
	// unavailable.
	operatorTimeout = time.Minute
	operatorRetry   = 500 * time.Millisecond
)

// haltCommands halts commands as the operator, and resumes. While Postgres is unavailable neither
// can be stored; the operator retries until it is, and the halt begins then.
func (r *round) haltCommands(ctx context.Context, f Fault) error {
	agency := haltedAgency(f.Target)
	halt := audit.Halt{Agency: agency}
	d := newDraw(r.Seed, int(f.At), r.fleet, r.Instances)
	if err := world.Eventually(ctx, operatorTimeout, "commands halted", func(attempt context.Context) bool {
		r.orderUnanswered(ctx, d, agency) // with a context that outlives the attempt
		halt.Written = r.writeHalt(attempt, agency)
		return retryLater(attempt, !halt.Written.IsZero())
	}); err != nil {
		return err
	}
	world.Pause(ctx, time.Until(halt.Written.Add(f.For)))
	halt.Lifting = time.Now()
	r.halts.Add(halt)
	return world.Eventually(ctx, operatorTimeout, "commands resumed", func(ctx context.Context) bool {
		output, err := r.operate(ctx, nil, append([]string{"resume", "--direct"}, flagOf(agency)...)...)
		// An earlier attempt resumed, and its answer was lost.
		return retryLater(ctx, err == nil || strings.Contains(output, "there is no halt of"))
	})
}

// retryLater waits before the next attempt, if this one failed.
func retryLater(ctx context.Context, succeeded bool) bool {
	if !succeeded {
		world.Pause(ctx, operatorRetry)
	}
	return succeeded
}

// orderUnanswered sends commands in every lane of the silent cars, which would be retransmitted
// during the halt if nothing stopped them.
func (r *round) orderUnanswered(ctx context.Context, d *draw, agency telematics.AgencyID) {
	for car := 1; car <= r.Vehicles; car++ {
		if profileOf(car).Name != "silent" || agency != 0 && agencyOf(car) != agency {
			continue
		}
		for _, action := range []telematics.Action{telematics.Lock, telematics.OpenTopCase, telematics.AttentionSignal} {
			o, id := order{car: car, action: action, prefer: "wait=9", instance: d.rng.IntN(r.Instances)}, d.id()
			r.load.background.Go(func() { r.load.calls.Add(r.call(ctx, o, id, o.instance, callTimeout)...) })
		}
	}
}

// writeHalt returns a time at which a halt was certainly stored; zero: it may not be.
func (r *round) writeHalt(ctx context.Context, agency telematics.AgencyID) time.Time {
	output := &haltOutput{}
	if _, err := r.operate(ctx, output, append([]string{"halt", "--direct", "--why", "chaos"}, flagOf(agency)...)...); err != nil {
		r.Log.Info("halt failed, retrying", "err", err)
	}
	return output.stored
}

func flagOf(agency telematics.AgencyID) []string {
	if agency == 0 {
		return nil
	}
	return []string{"--agency", fmt.Sprint(agency)}
}

// haltOutput notes when the operator's program reports that the halt is stored.
type haltOutput struct {
	text   bytes.Buffer
	stored time.Time
}

func (h *haltOutput) Write(p []byte) (int, error) {
	if h.text.Write(p); h.stored.IsZero() && strings.Contains(h.text.String(), "stored; ") {
		h.stored = time.Now()
	}
	return len(p), nil
}
