package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/bench/load"
	"motorpool/lab/bench/measure"
	"motorpool/lab/bench/report"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
)

// TestMain runs this binary as a job if the test starts it so.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != load.Command {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The figures are meaningless, but every experiment runs, no command and no report is lost, and no
// ratio lacks a figure.
func TestExperiments_MeasureEveryRatio(t *testing.T) {
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	binary, err := world.BuildProgram(t.Context(), "", t.TempDir(), false)
	require.NoError(t, err)
	all, err := everything(true)
	require.NoError(t, err)
	const short = 100 * time.Millisecond
	*all[0].(*measure.Command) = measure.Command{
		Vehicles: 300, InFlight: []int{1, 4, 16, 64, 256}, Duration: short, SlowCars: 20, Slow: short, Work: short, Floors: true,
	}
	*all[1].(*measure.Waiting) = measure.Waiting{Vehicles: 40, Network: short, Ramp: short}
	*all[2].(*measure.Ingest) = measure.Ingest{Vehicles: 1000, Duration: short}
	*all[3].(*measure.Fleet) = measure.Fleet{Vehicles: 40, Rate: 200, Duration: 4 * short, Instances: 2, StateInterval: time.Second}
	*all[4].(*measure.Rental) = measure.Rental{Starts: 2}
	*all[5].(*measure.Scale) = measure.Scale{Vehicles: 300, Connected: 60, Small: 20, History: 500, InFlight: 4, Duration: short}
	setup := measure.Setup{Binary: binary, Rounds: 1, Tiny: true}
	require.NoError(t, setup.OpenFiles())
	results := &report.Results{Rounds: 1, Figures: map[string][]float64{}}
	var mu sync.Mutex // guards results
	var running sync.WaitGroup
	for _, e := range all {
		running.Go(func() {
			own := &report.Results{Figures: map[string][]float64{}}
			assert.NoError(t, e.Measure(t.Context(), setup, own), "%T", e)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(results.Figures, own.Figures)
		})
	}
	running.Wait()
	results.Sum()
	for name, ratio := range results.Ratios {
		if ratio == nil {
			t.Errorf("the ratio %s was not measured", name)
		}
	}
	if connected := results.Figures["Scale/start/side=large connected"]; len(connected) != 1 || connected[0] != 60 {
		t.Errorf("%v units were connected in the large world, want 60", connected)
	}
}
