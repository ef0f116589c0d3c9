package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

const readyInterval = 2 * time.Millisecond

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startUntilReady returns how long an instance took until it was ready. Its readiness is polled
// from the start, so its port is chosen here.
func (w *testWorld) startUntilReady(ctx context.Context, more ...string) (*world.Instance, time.Duration, error) {
	port, err := devstack.FreePort()
	if err != nil {
		return nil, 0, err
	}
	polling, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	internal := fmt.Sprintf("127.0.0.1:%d", port)
	ready := make(chan time.Time, 1)
	begin := time.Now()
	go func() {
		for !world.Ready(polling, "http://"+internal) && polling.Err() == nil {
			world.Pause(polling, readyInterval)
		}
		ready <- time.Now()
	}()
	n, err := w.StartInstance(ctx, world.InstanceConfig{Settings: slices.Concat(settings, []string{"MOTORPOOL_INTERNAL=" + internal}, more)})
	if err != nil {
		return nil, 0, err
	}
	n.Internal = "http://" + internal
	at := <-ready
	if err := polling.Err(); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("wait until the service is ready: %w", err), n.Close())
	}
	return n, at.Sub(begin), nil
}
