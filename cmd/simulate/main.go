// Command simulate runs a simulated fleet against any MQTT broker: cars of a units file, or any
// number of them, with a model of their radio, faults, and a flight recorder.
//
// Ctrl-C is the evening of the fleet: every unit announces standby and disconnects.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"motorpool/internal/logger"
	"motorpool/internal/settings"
	"motorpool/simulator"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(settings.ExitCode(err))
	}
}

func start(ctx context.Context, args []string) error {
	var o options
	var reader settings.Reader
	parser, err := kong.New(&o, append(reader.Options("MOTORPOOL_SIM"), kong.Name("simulate"),
		kong.Description("Runs simulated cars against an MQTT broker. Ctrl-C: every unit announces standby and disconnects."))...)
	if err != nil {
		return err
	}
	settings.LogUnknown(logger.New(os.Stderr, "info", "text"), settings.UnknownVariables(parser.Model.Node, os.Environ(), "MOTORPOOL_SIM"))
	if _, err := reader.Parse(parser, args); err != nil {
		return err
	}
	return run(ctx, o, logger.New(os.Stderr, o.logLevel(), "text"))
}

func run(ctx context.Context, o options, logger *slog.Logger) (err error) {
	cars, err := o.cars()
	if err != nil {
		return err
	}
	recorder, closeRecord, err := o.recorder()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRecord()) }()

	keys := newKeys(o.Keys, logger)
	ring, err := loadKeyring(ctx, keys)
	if err != nil || ctx.Err() != nil {
		return err
	}
	fleet := simulator.NewFleet(simulator.FleetConfig{
		Keyring: ring, Latency: o.latency(), Interval: o.Interval, Seed: o.Seed, Recorder: recorder, Logger: logger, Stagger: o.Stagger,
	}, cars...)
	logger.Info("fleet starts", "cars", len(cars), "broker", o.Broker, "keys", len(ring))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watch(ctx, fleet, logger)
	var following errgroup.Group
	following.Go(func() error { return follow(ctx, keys, fleet) })
	err = fleet.Run(ctx)
	cancel()
	return errors.Join(err, following.Wait())
}

// watch logs how many cars are connected, whenever that has changed.
func watch(ctx context.Context, fleet *simulator.Fleet, logger *slog.Logger) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for known := -1; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := fleet.Connected(); n != known {
			logger.Info("fleet", "connected", n, "cars", len(fleet.Cars()))
			known = n
		}
	}
}
