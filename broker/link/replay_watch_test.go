package link

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

// A live presence that did not fit, as while Postgres is unavailable, is retained by the MQTT
// broker.
func TestALivePresenceThatDidNotFitIsSubscribedToAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var room atomic.Bool
		var heard, subscribed atomic.Int64
		r := newReplay(func(telematics.Message) bool {
			if room.Load() {
				heard.Add(1)
			}
			return room.Load()
		})
		done := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- r.watch(time.Second, slog.New(slog.DiscardHandler), "presence", func() error {
				subscribed.Add(1)
				r.take("topic", telematics.Message{Payload: []byte("online"), Retained: true})
				return nil
			}, done)
		}()
		time.Sleep(time.Minute) // all is complete
		r.take("topic", telematics.Message{Payload: []byte("online")})
		time.Sleep(10 * time.Second) // still full
		room.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := subscribed.Load(); heard.Load() != 1 || n < 2 || n > 8 {
			t.Errorf("heard %d times, after %d subscriptions", heard.Load(), n)
		}
		close(done)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
