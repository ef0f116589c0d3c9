package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"motorpool/cmd/chaos/money"
	"motorpool/cmd/internal/logger"
	"motorpool/cmd/internal/service"
	"motorpool/simulator/devstack"
)

// completeMoney fills in what a round of money needs. How long it takes is the round's to say.
func (f *flags) completeMoney() error {
	for f.Seed == 0 {
		f.Seed = uint64(rand.Uint32())
	}
	switch {
	case f.Commands != 0 || f.Print:
		return errors.New("--bookings: another round than that of commands; leave --commands and --print out")
	case f.Race && f.Binary != "":
		return errors.New("--race: builds a program of its own; leave --binary out")
	}
	return nil
}

// roundOfMoney leads bookings through their lives while everything is killed, and judges what was charged.
func (f flags) roundOfMoney(ctx context.Context) (code int, err error) {
	for _, server := range []string{devstack.MosquittoServer, devstack.RedisServer, devstack.PostgresServer} {
		if err := devstack.Available(server); err != nil {
			return worthless, err
		}
	}
	dir, err := os.MkdirTemp("", "motorpool-chaos-")
	if err != nil {
		return worthless, err
	}
	// Postgres runs as another user, and must reach its folder.
	if err := os.Chmod(dir, 0o711); err != nil {
		return worthless, err
	}
	defer func() {
		if code == 0 && !f.Keep {
			err = errors.Join(err, os.RemoveAll(dir))
			return
		}
		fmt.Fprintf(os.Stderr, "chaos: the logs are in %s; once more: make chaos SEED=%d ARGS=\"--bookings %d\"\n", dir, f.Seed, f.Bookings)
	}()
	if f.Binary, err = service.Program(ctx, f.Binary, dir, f.Race); err != nil {
		return worthless, err
	}
	round, err := money.Round(ctx, money.Config{
		Seed: f.Seed, Bookings: f.Bookings, Instances: f.Instances, Duration: f.Duration, Binary: f.Binary, Dir: dir,
		Progress: func(what string) { fmt.Fprintf(os.Stderr, "chaos: %s\n", what) }, Logger: logger.New(os.Stderr, f.LogLevel, "text"),
	})
	if err != nil {
		return worthless, err
	}
	races, err := racesIn(dir)
	if err != nil {
		return worthless, err
	}
	round.Write(os.Stdout)
	if races > 0 {
		fmt.Printf("data races: %d, in the logs of the instances\n", races)
	}
	switch {
	case len(round.Report.Violations) > 0 || races > 0:
		return violated, nil
	case round.Worthless() != "":
		return worthless, nil
	}
	return 0, nil
}
