package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"motorpool/cmd/internal/service"
)

// events measures the live events: vehicles report over MQTT, and many readers are told what has changed.
type events struct {
	stage
	Readers   int           `default:"500" placeholder:"N" help:"Readers that keep up (default ${default})."`
	Processes int           `default:"2" placeholder:"N" help:"That they are in (default ${default})."`
	Instances int           `default:"2" placeholder:"N" help:"Of the service (default ${default})."`
	Vehicles  int           `default:"1000" placeholder:"N" help:"That report in turn (default ${default})."`
	Rate      float64       `default:"1000" placeholder:"N" help:"Reports a second, each of which changes something (default ${default})."`
	Duration  time.Duration `default:"40s" placeholder:"DURATION" help:"Of the load; long enough to fill what the kernel holds for a reader that stalls (default ${default})."`
}

type eventsResult struct {
	Machine   machine          `json:"machine"`
	Readers   int              `json:"readers"`
	Instances int              `json:"instances"`
	Published int64            `json:"published"`
	Rate      float64          `json:"published_per_second"`
	Events    int64            `json:"events"`        // that the reader was told which all are held against
	Uneven    int              `json:"uneven"`        // readers that were told something else, or in another order
	Fewest    int64            `json:"fewest_events"` // of one reader
	Resets    int              `json:"resets"`
	Late      quantiles        `json:"late"`
	Resumed   resumed          `json:"resumed"`
	Stalled   stalled          `json:"stalled"`
	Used      map[string]usage `json:"used"`
}

// sound returns an error where a reader missed an event.
func (r eventsResult) sound() error {
	var failures []error
	if r.Events != r.Published {
		failures = append(failures, fmt.Errorf("%d reports changed something, and there were %d events", r.Published, r.Events))
	}
	if r.Uneven > 0 || r.Resets > 0 {
		failures = append(failures, fmt.Errorf("%d readers were told something else than the others; %d resets", r.Uneven, r.Resets))
	}
	if !r.Resumed.Gapless {
		failures = append(failures, errors.New("the reader that was cut again and again has a gap"))
	}
	if r.Stalled.After == 0 {
		failures = append(failures, errors.New("the reader that does not read was not cut"))
	}
	return errors.Join(failures...)
}

func (e events) Run(ctx context.Context) error {
	result := eventsResult{Machine: thisMachine(), Readers: e.Readers, Instances: e.Instances}
	if err := e.measure(ctx, &result); err != nil {
		return err
	}
	return errors.Join(e.print(os.Stdout, result), result.sound())
}

func (e events) measure(ctx context.Context, result *eventsResult) (err error) {
	w, err := e.newWorld(ctx, e.Vehicles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.tearDown()) }()
	all := meters{"mosquitto": w.mosquitto.PID(), "redis": w.redis.PID(), "postgres": w.postgres.PID()}
	var urls, counts []string
	for i := range e.Instances {
		n, err := w.serve(ctx)
		if err != nil {
			return err
		}
		w.later(n.Close)
		all[fmt.Sprintf("service %d", i+1)] = n.PID()
		urls, counts = append(urls, n.Public), append(counts, n.Internal+"/metrics")
	}
	l := &load{world: w, lines: 1}
	// Before anybody follows: the first reports of a vehicle change everything.
	if err := l.settleIn(ctx, counts[0]); err != nil {
		return err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	a, err := e.assemble(ctx, w, urls)
	if err != nil {
		return err
	}
	before, err := all.read()
	if err != nil {
		return err
	}
	say("%v of %.0f reports a second, %d readers", e.Duration, e.Rate, e.Readers)
	p, publisher, err := l.publish(ctx, counts[0], e.Duration, e.Rate)
	if err != nil {
		return err
	}
	result.Published, result.Rate = p.Messages, float64(p.Messages)/p.End.Sub(p.Begin).Seconds()
	if err := a.disperse(ctx, result); err != nil {
		return err
	}
	after, err := all.read()
	if err != nil {
		return err
	}
	result.Used = used(before, after)
	result.Used["publisher"], result.Used["readers"] = publisher, a.used
	return nil
}

// audience is all who follow.
type audience struct {
	crowds []*attendant
	used   usage

	uncut    *scanner
	heard    history // of the uncut reader
	stopRead func()

	total   chan int // how many events there were, for the reader that is cut
	resumed chan resumed
	stalled chan stalled
	failed  chan error
}

func (e events) assemble(ctx context.Context, w *world, urls []string) (*audience, error) {
	a := &audience{total: make(chan int, 1), resumed: make(chan resumed, 1), stalled: make(chan stalled, 1), failed: make(chan error, 2)}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: -1}}
	behind, err := lull(ctx, client, urls[0], w.admin)
	if err != nil {
		return nil, err
	}
	if a.uncut, a.stopRead, err = a.heard.uncut(ctx, client, urls[0], w.admin, behind); err != nil {
		return nil, err
	}
	for range e.Processes {
		args := []string{"follow", "--token", w.admin, "--behind", behind, "--readers", strconv.Itoa(e.Readers / e.Processes)}
		for _, u := range urls {
			args = append(args, "--url", u)
		}
		crowd, _, err := attend(ctx, args...)
		if err != nil {
			return nil, err
		}
		a.crowds = append(a.crowds, crowd)
	}
	// Both end with the context, at the latest.
	go func() {
		r, err := stall(ctx, urls[len(urls)-1], w.admin)
		if err != nil {
			a.failed <- fmt.Errorf("the reader that stalls: %w", err)
		}
		a.stalled <- r
	}()
	go func() {
		var told history
		r, err := told.cutAgainAndAgain(ctx, client, urls, w.admin, behind, a.total)
		if err != nil {
			a.failed <- fmt.Errorf("the reader that is cut: %w", err)
		}
		r.Gapless = r.Resets == 0 && slices.Equal(told.all(), a.heard.all())
		a.resumed <- r
	}()
	return a, nil
}

// disperse waits until the events have come, and gathers what all were told.
func (a *audience) disperse(ctx context.Context, result *eventsResult) error {
	_ = service.Eventually(ctx, catchUp, "all events have come", func(context.Context) bool { // the result says if not
		return a.uncut.told.Load() >= result.Published
	})
	events := len(a.heard.all())
	a.total <- events
	result.Resumed = <-a.resumed
	late := newLatencies()
	var readers []seen
	for _, crowd := range a.crowds {
		var saw followed
		u, err := crowd.finish(strconv.Itoa(events), &saw)
		if err != nil {
			return err
		}
		a.used.CPU += u.CPU
		a.used.Memory += u.Memory
		late.h.Merge(hdrhistogram.Import(saw.Late))
		readers = append(readers, saw.Readers...)
	}
	a.stopRead()
	result.hold(readers, a.uncut.seen)
	result.Events, result.Late = a.uncut.seen.Events, late.quantiles()
	select {
	case result.Stalled = <-a.stalled:
	case <-time.After(stallsWithin):
	}
	select {
	case err := <-a.failed:
		return err
	default:
		return nil
	}
}

// stallsWithin is how long after the load the reader that stalls may still be connected.
const stallsWithin = 10 * time.Second

// hold compares readers with the one that was never cut.
func (r *eventsResult) hold(readers []seen, uncut seen) {
	for _, s := range readers {
		if s.Events != uncut.Events || s.Order != uncut.Order {
			r.Uneven++
		}
		if r.Fewest == 0 || s.Events < r.Fewest {
			r.Fewest = s.Events
		}
		r.Resets += s.Resets
	}
}

func (r eventsResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	fmt.Fprintf(to, "\n%d readers at %d instances; %d reports, %.0f a second, were %d events\n", r.Readers, r.Instances, r.Published, r.Rate, r.Events)
	fmt.Fprintf(to, "of them, the reader that was told least was told %d; %d were told something else than the others; %d resets\n", r.Fewest, r.Uneven, r.Resets)
	fmt.Fprintf(to, "cut %d times: %d events, gapless: %v\n", r.Resumed.Cuts, r.Resumed.Events, r.Resumed.Gapless)
	fmt.Fprintf(to, "not reading: cut after %.1f s; then %d events to read, and %q\n\n", r.Stalled.After, r.Stalled.Events, r.Stalled.End)
	fmt.Fprintln(to, "from the vehicle to the reader\tp50 ms\tp90 ms\tp99 ms\tmax ms\t")
	fmt.Fprintf(to, "\t%s\t\n\n", r.Late)
	fmt.Fprintln(to, "process\ts CPU\tMB memory\t")
	for _, name := range slices.Sorted(maps.Keys(r.Used)) {
		fmt.Fprintf(to, "%s\t%.1f\t%.1f\t\n", name, r.Used[name].CPU, float64(r.Used[name].Memory)/1e6)
	}
}
