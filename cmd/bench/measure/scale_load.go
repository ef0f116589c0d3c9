package measure

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
	"motorpool/store/pg"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

const (
	storedWithin  = 3 * time.Minute
	clockSlack    = 200 * time.Millisecond // of what is stored in milliseconds
	listLimit     = 200
	repeatedReads = 5
	sweepTimeout  = time.Minute
	silentFor     = 11 * time.Minute // longer than a unit is online without a sign
)

// measureReports makes all units report in turn, and waits until Postgres has all reports.
func (w *scaleWorld) measureReports(ctx context.Context, rate float64, d time.Duration) error {
	Say("%d vehicles, %d connected, %d instances: %.0f reports a second for %v", w.vehicles, w.connected, len(w.instances), rate, d)
	before, err := load.ReadCounts(ctx, metricsURLs(w.instances)...)
	if err != nil {
		return err
	}
	wal, err := w.reader.wal(ctx)
	if err != nil {
		return err
	}
	used, err := w.reader.start(w.meters())
	if err != nil {
		return err
	}
	sent, err := w.report(ctx, rate, d)
	if err != nil {
		return err
	}
	l := ScaleLoad{Instances: len(w.instances), Messages: sent.Messages, Rate: float64(sent.Messages) / sent.End.Sub(sent.Begin).Seconds()}
	added, stored, err := w.awaitStored(ctx, before, sent)
	if err != nil {
		return err
	}
	if l.Used, err = used(); err != nil {
		return err
	}
	l.Seconds, l.Behind = stored.Sub(sent.Begin).Seconds(), stored.Sub(sent.End).Seconds()
	after, err := w.reader.wal(ctx)
	if err != nil {
		return err
	}
	l.WAL, l.Lost = after.Bytes-wal.Bytes, added.Lost(sent.Messages)
	if len(l.Lost) > 0 {
		w.fail("reports at %d instances: lost %v", l.Instances, l.Lost)
	}
	w.result.Reports = append(w.result.Reports, l)
	return errors.Join(w.countConnections(ctx), w.remember(ctx, fmt.Sprintf("%d reports, %d instances", sent.Messages, l.Instances), sent.Units))
}

// report makes the units of all brokers report concurrently.
func (w *scaleWorld) report(ctx context.Context, rate float64, d time.Duration) (all load.ReportsSent, err error) {
	sent := make([]load.ReportsSent, len(w.addresses))
	reporting, ctx := errgroup.WithContext(ctx)
	for i, address := range w.addresses {
		reporting.Go(func() (err error) {
			sent[i], err = load.RequestReports(ctx, address, rate/float64(len(w.addresses)), d)
			return err
		})
	}
	if err := reporting.Wait(); err != nil {
		return all, err
	}
	all = sent[0]
	for _, s := range sent[1:] {
		all.Messages += s.Messages
		all.Units += s.Units
		if s.Latest.Before(all.Latest) {
			all.Latest = s.Latest
		}
		if s.Begin.Before(all.Begin) {
			all.Begin = s.Begin
		}
		if s.End.After(all.End) {
			all.End = s.End
		}
	}
	return all, nil
}

// awaitStored waits until each report was merged or lost, and Postgres has heard of the latest of
// each unit.
func (w *scaleWorld) awaitStored(ctx context.Context, before load.Counts, sent load.ReportsSent) (added load.Counts, at time.Time, err error) {
	for ctx.Err() == nil {
		now, err := load.ReadCounts(ctx, metricsURLs(w.instances)...)
		if err != nil {
			return nil, at, err
		}
		added, at = now.Since(before), time.Now()
		units, err := w.reader.heardSince(ctx, sent.Latest.Add(-clockSlack))
		if err != nil || added.Ended() >= sent.Messages && units >= sent.Units {
			return added, at, err
		}
		if time.Since(sent.End) > storedWithin {
			w.fail("%v after the last of %d reports, %d are handled, and Postgres has those of %d of %d units", storedWithin, sent.Messages, added.Ended(), units, sent.Units)
			return added, at, nil
		}
		world.Pause(ctx, onlineEvery)
	}
	return nil, at, ctx.Err()
}

// countConnections counts connections that were lost.
func (w *scaleWorld) countConnections(ctx context.Context) error {
	w.result.Lost = 0
	for _, address := range w.addresses {
		counts, err := load.ReadUnitCounts(ctx, address)
		if err != nil {
			return err
		}
		w.result.Lost += counts.Lost
	}
	if w.result.Lost > 0 {
		w.fail("%d units have lost their connection", w.result.Lost)
	}
	return nil
}

// measureLists reads pages of the fleet at the first instance.
func (w *scaleWorld) measureLists(ctx context.Context) error {
	Say("%d vehicles: lists", w.vehicles)
	// A cursor as the service gives it; one page after the other, the last would take too long.
	late := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "vehicles:%d", min(listLimit+1, w.vehicles)))
	for _, page := range []struct{ name, query string }{
		{"first page", ""}, {"last page", "&cursor=" + late},
		{"online, first page", "&connectivity=online"}, {"offline: none", "&connectivity=offline"},
		{"one by its serial", "&q=" + string(load.UnitOf(w.vehicles/2))}, {"text that no vehicle has", "&q=lamborghini"},
	} {
		list := ScaleList{Name: page.name}
		var took []float64
		for range repeatedReads {
			begin := time.Now()
			body, err := w.get(ctx, fmt.Sprintf("%s/api/v1/admin/vehicles?limit=%d%s", w.instances[0].Public, listLimit, page.query))
			if err != nil {
				list.Failure = fmt.Sprintf("%.160s", err)
			}
			took, list.Bytes = append(took, milliseconds(time.Since(begin))), len(body)
		}
		list.Milliseconds = Median(took)
		if list.Failure != "" {
			w.fail("list, %s: %s", list.Name, list.Failure)
		}
		w.result.Lists = append(w.result.Lists, list)
	}
	return ctx.Err()
}

// measureSweep searches for silent units as an instance does: first there are none, then all that
// are connected.
func (w *scaleWorld) measureSweep(ctx context.Context) (err error) {
	Say("%d vehicles: the sweep for silent units", w.vehicles)
	db, err := pg.New(pg.Config{URL: w.Postgres.URL(), Timeout: sweepTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	fleet := vehicles.New(db)
	if _, err := fleet.Aged(ctx); err != nil { // what has become due meanwhile
		return err
	}
	sweep := func() (silent int, ms float64, err error) {
		begin := time.Now()
		changes, err := fleet.Aged(ctx)
		for _, change := range changes {
			if change.Presence == telematics.Absent {
				silent++
			}
		}
		return silent, milliseconds(time.Since(begin)), err
	}
	var took []float64
	for range repeatedReads {
		_, ms, err := sweep()
		if err != nil {
			return err
		}
		took = append(took, ms)
	}
	w.result.Sweep.Nothing = Median(took)
	if err := w.db.silence(ctx, silentFor); err != nil {
		return err
	}
	w.result.Sweep.Silent, w.result.Sweep.All, err = sweep()
	if err == nil && w.result.Sweep.Silent < w.connected {
		w.fail("the sweep has found %d of %d silent units", w.result.Sweep.Silent, w.connected)
	}
	return err
}
