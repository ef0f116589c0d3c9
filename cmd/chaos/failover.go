package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"motorpool/cmd/chaos/failover"
	"motorpool/cmd/internal/logger"
	"motorpool/cmd/internal/service"
	"motorpool/simulator/devstack"
)

// completeFailover fills in what a round of failover needs.
func (f *flags) completeFailover() error {
	for f.Seed == 0 {
		f.Seed = uint64(rand.Uint32())
	}
	switch {
	case f.Commands != 0 || f.Print || f.Bookings != 0 || f.Duration != 0:
		return errors.New("--failover: another round than that of commands; leave --commands, --bookings, --duration and --print out")
	case f.Race && f.Binary != "":
		return errors.New("--race: builds a separate program; leave --binary out")
	}
	return nil
}

// roundOfFailover fails Postgres over to a standby that is behind, and judges what became of the commands.
func (f flags) roundOfFailover(ctx context.Context) (code int, err error) {
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
		fmt.Fprintf(os.Stderr, "chaos: the logs are in %s; once more: make chaos SEED=%d ARGS=--failover\n", dir, f.Seed)
	}()
	if f.Binary, err = service.Program(ctx, f.Binary, dir, f.Race); err != nil {
		return worthless, err
	}
	round, err := failover.Round(ctx, failover.Config{
		Seed: f.Seed, Instances: f.Instances, Binary: f.Binary, Dir: dir,
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
	case len(round.Violations) > 0 || races > 0:
		return violated, nil
	case round.Worthless() != "":
		return worthless, nil
	}
	return 0, nil
}
