package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/cmd/bench/load"
	"motorpool/cmd/bench/measure"
	"motorpool/cmd/bench/report"
	"motorpool/internal/app"
	"motorpool/internal/logger"
	"motorpool/internal/settings"
	"motorpool/simulator/devstack"
)

// TestMain runs this binary as a job or as the service if the tests start it so.
func TestMain(m *testing.M) {
	programs := map[string]func(context.Context, []string) error{load.Command: run, "serve": serve}
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := programs[os.Args[1]](ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, args []string) error {
	var command struct {
		Serve app.Config `cmd:""`
	}
	var reader settings.Reader
	parser, err := kong.New(&command, reader.Options("MOTORPOOL")...)
	if err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return err
	}
	listeners, err := command.Serve.Listen()
	if err != nil {
		return err
	}
	return app.Serve(ctx, command.Serve, listeners, logger.New(os.Stderr, command.Serve.LogLevel, command.Serve.LogFormat))
}

// A measurement with a million vehicles runs with: make bench ARGS=scale.
func TestScale_MeasuresATinyFleet(t *testing.T) {
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scale := measure.Scale{
		Vehicles: 300, Connected: 60, Small: 20, Shards: 2, InFlight: 4, Duration: 50 * time.Millisecond, Rate: 200, Reporting: 300 * time.Millisecond,
	}
	results := &measure.Results{}
	if err := scale.Measure(t.Context(), measure.Setup{Binary: self, Rounds: 1, Tiny: true}, results); err != nil {
		t.Error(err)
	}
	r := results.Scale
	if r == nil || len(r.Commands) != 2 || len(r.Large.Reports) != 2 || len(r.Large.Lists) == 0 {
		t.Fatalf("some measurements are missing: %+v", r)
	}
	for _, w := range []measure.ScaleWorld{r.Small, r.Large} {
		if w.Starts[0].Online != w.Connected || w.Sweep.Silent != w.Connected || w.Reports[0].Messages < 50 || w.Alone.Ready <= 0 {
			t.Errorf("result %+v has implausible numbers", w)
		}
	}
	var text bytes.Buffer
	if err := report.Tables(&text, results); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"300 vehicles on record", "60 units connected", "first page", "sweep for silent units", "a command costs"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the tables lack %q:\n%s", part, &text)
		}
	}
}
