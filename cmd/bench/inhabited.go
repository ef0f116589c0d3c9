package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// inhabited is a world with vehicles that listen, and instances of the service that were started with nothing in memory.
type inhabited struct {
	*traffic
	part   part
	urls   []string
	meters meters
	listen *attendant
	undo   []func() error
}

// inhabit also puts the record in order, as the servers' own housekeeping would in time: it must not begin in one world and not in
// the other while they are compared.
func (w *world) inhabit(ctx context.Context, instances, listening int) (in *inhabited, err error) {
	in = &inhabited{traffic: &traffic{world: w}, part: partOf(w.vehicles, listening), meters: meters{
		"postgres": w.postgres.PID(), "redis": w.redis.PID(), "mosquitto": w.mosquitto.PID(),
	}}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.end())
		}
	}()
	if in.eyes, err = openWitness(w.postgres.URL()); err != nil {
		return in, err
	}
	in.undo = append(in.undo, func() error { in.eyes.close(); return nil })
	if err := in.eyes.tidy(ctx); err != nil {
		return in, err
	}
	for i := range instances {
		n, err := w.serve(ctx)
		if err != nil {
			return in, err
		}
		in.undo = append(in.undo, n.Close)
		in.urls = append(in.urls, n.Public)
		in.meters[nameOf("service", i)] = n.PID()
	}
	in.listen, _, err = attend(ctx, "cars", "--broker", w.mosquitto.ServiceURL(), "--password", gatewayPassword, "--root", serviceRoot,
		"--keyring", w.path("units.jwks"), "--vehicles", strconv.Itoa(in.part.Vehicles), "--every", strconv.Itoa(in.part.Every),
		"--connections", strconv.Itoa(in.part.Vehicles))
	return in, err
}

// nameOf tells processes apart of which there are several.
func nameOf(process string, i int) string {
	if i == 0 {
		return process
	}
	return fmt.Sprintf("%s %d", process, i+1)
}

// order has the vehicles locked for a while, with so many commands in flight at each instance.
func (in *inhabited) order(ctx context.Context, inFlight int, d time.Duration) (callRound, error) {
	args := []string{"order", "--token", in.admin, "--vehicles", strconv.Itoa(in.part.Vehicles), "--every", strconv.Itoa(in.part.Every),
		"--in-flight", strconv.Itoa(inFlight * len(in.urls))}
	for _, url := range in.urls {
		args = append(args, "--url", url)
	}
	last, err := in.eyes.lastLine(ctx)
	if err != nil {
		return callRound{}, err
	}
	r, err := in.round(ctx, "caller", d, in.meters, args...)
	if err != nil {
		return r, err
	}
	lines, err := in.eyes.lockedSince(ctx, last)
	r.Lines = lines - r.warmed
	return r, err
}

// leave ends the vehicles, which say what they did, and the instances.
func (in *inhabited) leave(u *underLoad) error {
	var heard heardByAll
	_, err := in.listen.finish("end", &heard)
	u.Done, u.Repeated, u.Connected = heard.Started, heard.Repeated, heard.Connected
	return errors.Join(err, in.end())
}

func (in *inhabited) end() error {
	var failures []error
	for i := len(in.undo) - 1; i >= 0; i-- {
		failures = append(failures, in.undo[i]())
	}
	return errors.Join(failures...)
}

// tidy does what Postgres would do by itself within minutes.
func (w *witness) tidy(ctx context.Context) error {
	for _, work := range []string{`vacuum (analyze)`, `checkpoint`} { //nolint:misspell // as Postgres spells it
		if _, err := w.db.ExecContext(ctx, work); err != nil {
			return fmt.Errorf("put postgres in order: %w", err)
		}
	}
	return nil
}

func (w *world) durable(ctx context.Context) (string, error) {
	eyes, err := openWitness(w.postgres.URL())
	if err != nil {
		return "", err
	}
	defer eyes.close()
	return eyes.durable(ctx)
}

// lastLine is the history's last, as long as nobody writes to it.
func (w *witness) lastLine(ctx context.Context) (id int64, err error) {
	err = w.db.GetContext(ctx, &id, `select coalesce(max(id), 0) from activity`)
	return id, err
}

// lockedSince counts the history's later lines of vehicles that were locked.
func (w *witness) lockedSince(ctx context.Context, line int64) (n int64, err error) {
	err = w.db.GetContext(ctx, &n, `select count(*) from activity where id > $1 and action = 'command.lock' and outcome = 'executed'`, line)
	return n, err
}
