package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoMoreIsClaimedThanIsAllowed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPace()
	var claimed atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				n := p.claim(ctx, 7)
				if n == 0 {
					return
				}
				if claimed.Add(n) == 1000 {
					cancel()
				}
			}
		})
	}
	for total := int64(0); total <= 1000; total += 10 {
		p.allow(total)
	}
	all.Wait()
	if claimed.Load() != 1000 {
		t.Errorf("%d claimed", claimed.Load())
	}
}

func TestAnOpenPaceKeepsToItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p := newPace()
		if err := p.open(ctx, 4321); err != nil {
			t.Fatal(err)
		}
		if n := p.allowed.Load(); n < 43_180 || n > 43_210 {
			t.Errorf("%d allowed in 10 s", n)
		}
	})
}

func TestAClosedPaceKeepsAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p := newPace()
		ended := int64(0)
		err := p.closed(ctx, 500, func(context.Context) (int64, error) {
			if n := p.allowed.Load(); n != 0 && n != ended+500 {
				t.Errorf("%d allowed when %d had ended", n, ended)
			}
			if ended += 300; ended > 3000 {
				cancel()
			}
			return ended, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestAPaceEndsWithItsSource(t *testing.T) {
	gone := errors.New("the service is gone")
	if err := newPace().closed(t.Context(), 1, func(context.Context) (int64, error) { return 0, gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
}
