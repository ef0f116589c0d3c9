package store

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/rental"
)

// noncesAt opens an instance that a busy machine does not make impatient.
func noncesAt(t *testing.T, address string) *Nonces {
	t.Helper()
	n := openRedis(t, address).Nonces()
	n.patience = patience
	return n
}

func spent(t *testing.T, n *Nonces, key, nonce string) bool {
	t.Helper()
	first, err := n.Spend(t.Context(), key, nonce)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

func TestANonceIsUsedOnceAtWhicheverInstance(t *testing.T) {
	for name, address := range map[string]string{"miniredis": miniredis(t), "redis": startRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			instances := []*Nonces{noncesAt(t, address), noncesAt(t, address)}
			if !spent(t, instances[0], "ak_1", "nonce-1") {
				t.Error("the first use reads as another")
			}
			for _, n := range instances {
				if spent(t, n, "ak_1", "nonce-1") {
					t.Error("it is used twice")
				}
			}
			if !spent(t, instances[1], "ak_1", "Nonce-1") || !spent(t, instances[1], "ak_2", "nonce-1") {
				t.Error("another nonce, or another key's, reads as used")
			}
			var first atomic.Int64
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					ok, err := instances[i%2].Spend(t.Context(), "ak_1", "nonce-2")
					if err != nil {
						t.Error(err)
					} else if ok {
						first.Add(1)
					}
				})
			}
			all.Wait()
			if n := first.Load(); n != 1 {
				t.Errorf("%d of 60 at once were the first", n)
			}
		})
	}
}

func TestANonceIsRememberedForAsLongAsItsSignatureCanBeFresh(t *testing.T) {
	server := startMiniredis(t)
	n := noncesAt(t, server.URL())
	spent(t, n, "ak_1", "nonce-1")
	left, err := n.redis.client.TTL(t.Context(), "motorpool:nonce:ak_1:nonce-1").Result()
	if err != nil || left > 660*time.Second || left < 650*time.Second || left < 2*rental.SignatureSkew {
		t.Errorf("it is remembered for %v, %v", left, err)
	}
}

// lossy loses the answer to the first SET, as a connection that breaks does: the library asks again.
type lossy struct{ lost atomic.Bool }

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if err == nil && command.Name() == "set" && l.lost.CompareAndSwap(false, true) {
			return next(ctx, command)
		}
		return err
	}
}

func TestAnAnswerThatWasLostDoesNotReadAsAReplay(t *testing.T) {
	for name, address := range map[string]string{"miniredis": miniredis(t), "redis": startRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			n := noncesAt(t, address)
			wire := &lossy{}
			n.redis.client.AddHook(wire)
			if !spent(t, n, "ak_1", "nonce-1") {
				t.Error("the first use reads as another")
			}
			if !wire.lost.Load() {
				t.Error("no answer was lost")
			}
			if spent(t, n, "ak_1", "nonce-1") {
				t.Error("it is used twice")
			}
		})
	}
}

func TestARedisThatIsAwayHoldsUpNoClient(t *testing.T) {
	server := startRedis(t)
	var log bytes.Buffer
	n := openRedis(t, server.URL()).Nonces()
	clock := &hands{at: time.Now()}
	n.outage.log, n.outage.now = slog.New(slog.NewTextHandler(&log, nil)), clock.now
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range 1_000 {
		if first, err := n.Spend(t.Context(), "ak_1", "nonce-1"); first || !Away(err) {
			t.Fatalf("%d: %v %v", i, first, err)
		}
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("1000 requests were held up for %v", took)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nonces are remembered again", func() bool {
		clock.move(holdOff)
		_, err := n.Spend(t.Context(), "ak_1", "nonce-2")
		return err == nil
	})
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "changes are taken again") {
		t.Errorf("log:\n%s", text)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := n.Spend(gone, "ak_1", "nonce-3"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	if !n.outage.mayAsk() {
		t.Error("a caller that left says something of Redis")
	}
}
