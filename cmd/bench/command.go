package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/cmd/internal/service"
)

// command measures what the service adds to the round trip of a command: against publishing and waiting for an echo, and against a
// handler that checks the token and signs but writes nothing down.
type command struct {
	stage
	Vehicles    int           `default:"1000" placeholder:"N" help:"That are locked in turn (default ${default})."`
	Connections int           `default:"1000" placeholder:"N" help:"MQTT connections of the vehicles (default ${default})."`
	InFlight    []int         `default:"1,16,256" placeholder:"N,…" help:"Commands that wait at once (default ${default})."`
	Duration    time.Duration `default:"8s" placeholder:"DURATION" help:"Of one round (default ${default})."`
	Rounds      int           `default:"3" placeholder:"N" help:"Of the floors and of the service, in turn (default ${default})."`
	Floors      bool          `default:"true" negatable:"" help:"Measure the floors; without them only the service, to compare two builds."`
	Profile     string        `placeholder:"FILE" help:"Keep what the service's CPU does under the last load, for go tool pprof."`
}

type commandResult struct {
	Machine     machine      `json:"machine"`
	Vehicles    int          `json:"vehicles"`
	Connections int          `json:"connections"`
	Bytes       int          `json:"message_bytes"`
	Postgres    string       `json:"postgres"`
	At          []commandsAt `json:"at"`
	Steps       []step       `json:"steps"` // of one command at a time
}

// commandsAt is what was measured with so many commands in flight.
type commandsAt struct {
	InFlight int         `json:"in_flight"`
	Floor    []callRound `json:"floor"`
	Fair     []callRound `json:"fair_floor"`
	Service  []callRound `json:"service"`
}

// messageSize is how long a signed command is, about: that of the floor is as long.
const messageSize = 460

func (c command) Run(ctx context.Context) error {
	result := commandResult{Machine: thisMachine(), Vehicles: c.Vehicles, Connections: c.Connections, Bytes: messageSize}
	err := c.measure(ctx, &result)
	return errors.Join(err, c.print(os.Stdout, result))
}

func (c command) measure(ctx context.Context, result *commandResult) (err error) {
	w, err := c.newWorld(ctx, c.Vehicles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.tearDown()) }()
	n, err := w.serve(ctx)
	if err != nil {
		return err
	}
	w.later(n.Close)
	traffic, err := w.newTraffic(ctx, n, c.Connections)
	if err != nil {
		return err
	}
	defer traffic.eyes.close()
	if result.Postgres, err = traffic.eyes.durable(ctx); err != nil {
		return err
	}
	// The first order to a vehicle costs more, since it reads the vehicle. In a service that runs, most have had theirs.
	if _, err := traffic.service(ctx, 64, 2*time.Second); err != nil {
		return err
	}
	if result.Steps, err = traffic.steps(ctx, c.Duration); err != nil {
		return err
	}
	for _, inFlight := range c.InFlight {
		at := commandsAt{InFlight: inFlight}
		for round := range c.Rounds {
			say("%d commands in flight: round %d of %d", inFlight, round+1, c.Rounds)
			for _, side := range []struct {
				rounds *[]callRound
				run    func(context.Context, int, time.Duration) (callRound, error)
			}{{&at.Floor, repeated(traffic.floor)}, {&at.Fair, repeated(traffic.fair)}, {&at.Service, traffic.service}} {
				if !c.Floors && side.rounds != &at.Service {
					continue
				}
				r, err := side.run(ctx, inFlight, c.Duration)
				if err != nil {
					return err
				}
				*side.rounds = append(*side.rounds, r)
			}
		}
		result.At = append(result.At, at)
	}
	if c.Profile != "" {
		if err := traffic.profile(ctx, c.InFlight[len(c.InFlight)-1], c.Duration, c.Profile); err != nil {
			return err
		}
	}
	return result.sound()
}

// sound returns an error where a command was lost, or is not in the history once.
func (r commandResult) sound() error {
	var failures []error
	for _, at := range r.At {
		for _, rounds := range [][]callRound{at.Floor, at.Fair, at.Service} {
			for _, round := range rounds {
				if round.Refused > 0 {
					failures = append(failures, fmt.Errorf("%d in flight: %d not answered: %s", at.InFlight, round.Refused, round.Why))
				}
			}
		}
		for _, round := range at.Service {
			if round.Lines != round.Answered {
				failures = append(failures, fmt.Errorf("%d in flight: %d answered, %d lines in the history", at.InFlight, round.Answered, round.Lines))
			}
		}
	}
	return errors.Join(failures...)
}

// traffic is commands to vehicles that listen: to those of the floors, and to those of the service.
type traffic struct {
	*world
	instance *service.Instance
	eyes     *witness
	cars     map[string]*attendant // by root
}

func (w *world) newTraffic(ctx context.Context, n *service.Instance, connections int) (*traffic, error) {
	t := &traffic{world: w, instance: n, cars: map[string]*attendant{}}
	for _, root := range []string{floorRoot, fairRoot, serviceRoot} {
		args := []string{"cars", "--broker", w.mosquitto.ServiceURL(), "--password", gatewayPassword, "--root", root,
			"--vehicles", strconv.Itoa(w.vehicles), "--connections", strconv.Itoa(min(connections, w.vehicles))}
		if root != floorRoot {
			args = append(args, "--keyring", w.path("units.jwks"))
		}
		cars, _, err := attend(ctx, args...)
		if err != nil {
			return nil, err
		}
		w.later(cars.stop)
		t.cars[root] = cars
	}
	var err error
	t.eyes, err = openWitness(w.postgres.URL())
	return t, err
}

// floor publishes and waits for echoes.
func (t *traffic) floor(ctx context.Context, inFlight int, d time.Duration) (callRound, error) {
	return t.round(ctx, "exchange", d, meters{"mosquitto": t.mosquitto.PID(), "cars": t.cars[floorRoot].pid()},
		"exchange", "--broker", t.mosquitto.ServiceURL(), "--password", gatewayPassword,
		"--vehicles", strconv.Itoa(t.vehicles), "--in-flight", strconv.Itoa(inFlight), "--bytes", strconv.Itoa(messageSize))
}

// fair orders of the handler that writes nothing down.
func (t *traffic) fair(ctx context.Context, inFlight int, d time.Duration) (r callRound, err error) {
	bare, address, err := attend(ctx, "bare", "--broker", t.mosquitto.ServiceURL(), "--password", gatewayPassword,
		"--signing", t.path("signing.jwks"), "--tokens", t.path("tokens.jwks"), "--vehicles", strconv.Itoa(t.vehicles))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	return t.order(ctx, []string{"http://" + address}, inFlight, d,
		meters{"bare": bare.pid(), "mosquitto": t.mosquitto.PID(), "cars": t.cars[fairRoot].pid()})
}

// service orders of the service, and counts the lines of its history.
func (t *traffic) service(ctx context.Context, inFlight int, d time.Duration) (callRound, error) {
	return t.recorded(ctx, []string{t.instance.Public}, inFlight, d, meters{
		"service": t.instance.PID(), "postgres": t.postgres.PID(), "redis": t.redis.PID(),
		"mosquitto": t.mosquitto.PID(), "cars": t.cars[serviceRoot].pid(),
	})
}

// steps tells where the time of one command at a time goes.
func (t *traffic) steps(ctx context.Context, d time.Duration) ([]step, error) {
	taken, err := t.observed(ctx, "trace", 1, d)
	if err != nil {
		return nil, err
	}
	return breakdown(bytes.NewReader(taken))
}

// profile keeps what the service's CPU does under a load.
func (t *traffic) profile(ctx context.Context, inFlight int, d time.Duration, file string) error {
	taken, err := t.observed(ctx, "profile", inFlight, d)
	if err != nil {
		return err
	}
	return os.WriteFile(file, taken, 0o600)
}

// observed lets the service observe itself under a load, which costs: it is not measured.
func (t *traffic) observed(ctx context.Context, kind string, inFlight int, d time.Duration) (taken []byte, err error) {
	loading, ctx := errgroup.WithContext(ctx)
	loading.Go(func() error {
		_, err := t.service(ctx, inFlight, d+2*time.Second)
		return err
	})
	loading.Go(func() (err error) {
		time.Sleep(time.Second) // until the load is there
		taken, err = takeProfile(ctx, t.instance.Internal, kind, d)
		return err
	})
	return taken, loading.Wait()
}

func (t *traffic) recorded(ctx context.Context, urls []string, inFlight int, d time.Duration, m meters) (callRound, error) {
	before, err := t.eyes.locked(ctx)
	if err != nil {
		return callRound{}, err
	}
	r, err := t.order(ctx, urls, inFlight, d, m)
	if err != nil {
		return r, err
	}
	after, err := t.eyes.locked(ctx)
	r.Lines = after - before - r.warmed
	return r, err
}

func (t *traffic) order(ctx context.Context, urls []string, inFlight int, d time.Duration, m meters) (callRound, error) {
	args := []string{"order", "--token", t.admin, "--vehicles", strconv.Itoa(t.vehicles), "--in-flight", strconv.Itoa(inFlight)}
	for _, url := range urls {
		args = append(args, "--url", url)
	}
	return t.round(ctx, "caller", d, m, args...)
}

// round warms up, and then has a helper call for a while.
func (t *traffic) round(ctx context.Context, caller string, d time.Duration, m meters, args ...string) (callRound, error) {
	var r callRound
	var warm called
	if _, err := work(ctx, &warm, append(args, "--for", (d/8).String())...); err != nil {
		return r, err
	}
	r.warmed = warm.Answered
	before, err := m.read()
	if err != nil {
		return r, err
	}
	by, err := work(ctx, &r.called, append(args, "--for", d.String())...)
	if err != nil {
		return r, err
	}
	after, err := m.read()
	if err != nil {
		return r, err
	}
	r.Used = used(before, after)
	r.Used[caller] = by
	return r, nil
}
