package world

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatComesInTimeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := Eventually(t.Context(), time.Minute, "half a minute has gone by", func(context.Context) bool {
			return time.Since(begin) >= 30*time.Second
		}); err != nil {
			t.Error(err)
		}
		err := Eventually(t.Context(), time.Minute, "it never comes", func(context.Context) bool { return false })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 2*time.Minute {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestAProgramThatIsNamedIsNotBuilt(t *testing.T) {
	binary, err := Build(t.Context(), "some/motorpool", t.TempDir(), false)
	if err != nil || !filepath.IsAbs(binary) || filepath.Base(binary) != "motorpool" {
		t.Errorf("%q, %v", binary, err)
	}
}
