package folder

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/require"
)

func TestEventually_UntilTheConditionOrTheTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := Eventually(t.Context(), time.Minute, "half a minute has passed", func(context.Context) bool {
			return time.Since(begin) >= 30*time.Second
		}); err != nil {
			t.Error(err)
		}
		err := Eventually(t.Context(), time.Minute, "it never comes", func(context.Context) bool { return false })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 2*time.Minute {
			t.Errorf("error %v after %v, want the deadline exceeded", err, time.Since(begin))
		}
	})
}

func TestNew_SecretsStayInTheFolder(t *testing.T) {
	dir := t.TempDir()
	first, err := New(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	second, err := New(dir, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	if first.Signing.Active().ID != second.Signing.Active().ID || first.UnitPassword("car-1") != second.UnitPassword("car-1") ||
		first.AgencySecrets != second.AgencySecrets {
		t.Error("the secrets changed when the folder was opened again")
	}
	other, err := New(t.TempDir(), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	if first.UnitPassword("car-1") == other.UnitPassword("car-1") || first.AgencySecrets == other.AgencySecrets {
		t.Error("two folders have the same secrets")
	}
}

func TestClose_RunsInReverseOrderAndJoinsErrors(t *testing.T) {
	f := &Folder{}
	var order []int
	failure := errors.New("not closed")
	for n := range 3 {
		f.OnClose(func() error {
			order = append(order, n)
			if n == 1 {
				return failure
			}
			return nil
		})
	}
	if err := f.Close(); !errors.Is(err, failure) || !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("closed in the order %v, %v; want the reverse order and the error", order, err)
	}
	if err := f.Close(); err != nil || len(order) != 3 {
		t.Errorf("a second Close: %v, %v", order, err)
	}
}
