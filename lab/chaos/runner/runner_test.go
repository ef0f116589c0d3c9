package runner

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/lab/world"
)

func TestRun_ErrorOfAFaultEndsTheLoadAndTheRound(t *testing.T) {
	w, err := world.New(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	broken, loaded := errors.New("broken"), false
	_, err = Run(t.Context(), w, func(*world.World, Config) (Round, error) {
		return Round{
			Load:   func(ctx context.Context, over <-chan struct{}) { <-over; <-ctx.Done(); loaded = true },
			Faults: func(context.Context) error { return broken },
			Settle: func(context.Context) error { t.Error("a broken round settles"); return nil },
			Check:  func(time.Duration) Result { t.Error("a broken round is checked"); return Result{} },
		}, nil
	}, Config{})
	if !errors.Is(err, broken) || !loaded {
		t.Errorf("error %v, load ended %t; want the fault's error, after the load", err, loaded)
	}
}
