package stream_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/guard"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
)

// panicking is a log whose first two readers panic, the second one after the first event.
type panicking struct {
	stream.Log
	follows atomic.Int32
}

func (l *panicking) Follow(ctx context.Context, _ int, begin, _ func([]telematics.Event)) error {
	if l.follows.Add(1) == 1 {
		panic("of the test")
	}
	begin([]telematics.Event{{ID: "1-0", Kind: telematics.ResetEvent}})
	if l.follows.Load() == 2 {
		panic("of the test")
	}
	<-ctx.Done()
	return nil
}

func TestFeed_PanicOfTheLogEndsNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &panicking{}
		feed := stream.New(stream.Config{
			Log: log, Body: func(telematics.Event) any { return nil },
			Guard: guard.New(slog.New(slog.DiscardHandler), nil), Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- feed.Run(ctx) }()
		release, err := feed.Admit(ctx, telematics.Actor{})
		if err != nil || log.follows.Load() != 2 {
			t.Fatalf("Admit = %v after %d readings of the log, want a stream after 2", err, log.follows.Load())
		}
		time.Sleep(time.Minute)
		if n := log.follows.Load(); n != 3 {
			t.Errorf("the log was read %d times, want 3: the last one goes on", n)
		}
		release()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}
