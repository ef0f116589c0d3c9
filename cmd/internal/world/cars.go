package world

import (
	"context"
	"fmt"
	"sync"

	"motorpool/simulator"
)

// StartCars runs a simulated fleet until Close. It does not wait for connections. If the fleet ends by itself, fail is called with the reason.
func (w *World) StartCars(ctx context.Context, fail func(error), c simulator.FleetConfig, cars ...simulator.Config) *simulator.Fleet {
	fleet := simulator.NewFleet(c, cars...)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := fleet.Run(ctx); err != nil {
			fail(fmt.Errorf("cars: %w", err))
		}
	})
	w.OnClose(func() error { stop(); running.Wait(); return nil })
	return fleet
}
