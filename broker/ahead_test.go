package broker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

// pen signs with a key, and notes for which numbers.
type pen struct {
	telematics.SigningKey
	mu      sync.Mutex
	takes   time.Duration
	fails   func() error // nil: it does not
	numbers []int64
}

func (p *pen) Sign(c telematics.Claims) ([]byte, error) {
	p.mu.Lock()
	takes, fails := p.takes, p.fails
	p.numbers = append(p.numbers, c.Seq)
	p.mu.Unlock()
	time.Sleep(takes)
	if fails != nil {
		if err := fails(); err != nil {
			return nil, err
		}
	}
	return p.SigningKey.Sign(c)
}

func (p *pen) set(takes time.Duration, fails func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.takes, p.fails = takes, fails
}

func (p *pen) signed() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.numbers)
}

// inWorldOfPen runs a test with two instances: the first signs with the pen.
func inWorldOfPen(t *testing.T, s *tampering, test func(w *world, p *pen)) {
	t.Helper()
	inWorldOf(t, between(s), func(w *world) {
		key, err := telematics.NewSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		w.stops[0]() // a world's instances sign with one key, and without a pen
		w.brokers, w.stops = nil, nil
		w.air.ring = key.Keyring()
		p := &pen{SigningKey: key}
		w.start(s, p)
		w.start(s, key)
		synctest.Wait()
		test(w, p)
	})
}

func TestACommandIsSignedWhileItsRowIsWritten(t *testing.T) {
	const takes = time.Second
	x := &tampering{}
	x.claim = func(ctx context.Context, c telematics.Command) (telematics.Claim, error) {
		time.Sleep(takes)
		return x.Memory.Claim(ctx, c)
	}
	inWorldOfPen(t, x, func(w *world, p *pen) {
		w.answers(0, 0, telematics.Succeeded)
		_, err := w.send(telematics.Lock) // before the first there is nothing to guess by
		w.wantCode(err, "")
		p.set(takes, nil)
		asked := time.Now()
		c, err := w.send(telematics.Unlock)
		w.wantCode(err, "")
		if took := time.Since(asked); took >= 2*takes {
			t.Errorf("took %v: one after the other", took)
		}
		if want := []int64{1, 2}; c.Seq != 2 || !slices.Equal(p.signed(), want) {
			t.Errorf("signed for %v, want %v", p.signed(), want)
		}
	})
}

func TestAMessageHasTheNumberOfItsCommand(t *testing.T) {
	x := &tampering{}
	x.claim = func(ctx context.Context, c telematics.Command) (telematics.Claim, error) {
		time.Sleep(time.Millisecond) // what is signed ahead is signed first
		return x.Memory.Claim(ctx, c)
	}
	inWorldOfPen(t, x, func(w *world, p *pen) {
		for i, instance := range []int{0, 0, 1, 0, 0, 0, 1, 1, 0} {
			w.answers(instance, 0, telematics.Succeeded)
			c, err := w.sendVia(instance, w.order(telematics.Lock))
			w.wantCode(err, "")
			sent := w.air.published()
			if len(sent) != i+1 || sent[i].claims.Command != c.ID || sent[i].claims.Seq != c.Seq || c.Seq != int64(i+1) {
				t.Errorf("command %d has the number %d, and was sent as %+v", i+1, c.Seq, sent[len(sent)-1].claims)
			}
		}
		// The fourth and the ninth were thought to be the third and the seventh; after a wrong guess none is made.
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 9}; !slices.Equal(p.signed(), want) {
			t.Errorf("signed for %v, want %v", p.signed(), want)
		}
	})
}

func TestSigningAheadThatFailsIsTriedAgain(t *testing.T) {
	for name, fails := range map[string]func() error{
		"the key is away": func() error { return errors.New("the key is away") },
		"it panics":       func() error { panic("who waits for an answer must be told, and the process must live") },
	} {
		t.Run(name, func(t *testing.T) {
			x := &tampering{}
			inWorldOfPen(t, x, func(w *world, p *pen) {
				w.answers(0, 0, telematics.Succeeded)
				_, err := w.send(telematics.Lock)
				w.wantCode(err, "")
				p.set(0, fails)
				x.claim = func(ctx context.Context, c telematics.Command) (telematics.Claim, error) {
					time.Sleep(time.Second)
					p.set(0, nil)
					return x.Memory.Claim(ctx, c)
				}
				_, err = w.send(telematics.Lock)
				w.wantCode(err, "")
				if want := []int64{1, 2, 2}; !slices.Equal(p.signed(), want) {
					t.Errorf("signed for %v, want %v", p.signed(), want)
				}
			})
		})
	}
}

func TestNobodyGuessesWhileOthersClaim(t *testing.T) {
	x := &tampering{}
	inWorldOfPen(t, x, func(w *world, p *pen) {
		w.answers(0, 0, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		x.claim = func(ctx context.Context, c telematics.Command) (telematics.Claim, error) {
			time.Sleep(time.Second)
			return x.Memory.Claim(ctx, c)
		}
		numbers := map[telematics.CommandID]int64{}
		var mu sync.Mutex
		var sending sync.WaitGroup
		for _, action := range []telematics.Action{telematics.Lock, telematics.AttentionSignal, telematics.OpenTopCase} { // each in a lane of its own
			sending.Go(func() {
				order := w.order(action)
				if action == telematics.AttentionSignal {
					order.Attention = &telematics.Attention{Signal: telematics.Both, Duration: telematics.DefaultPulse}
				}
				c, err := w.sendVia(0, order)
				if err != nil {
					t.Errorf("%s: %v", action, err)
				}
				mu.Lock()
				defer mu.Unlock()
				numbers[c.ID] = c.Seq
			})
		}
		sending.Wait()
		for _, sent := range w.air.published()[1:] {
			if sent.claims.Seq != numbers[sent.claims.Command] {
				t.Errorf("command %d was sent with the number %d", numbers[sent.claims.Command], sent.claims.Seq)
			}
		}
		// The first to claim is alone, and guesses; two others do not.
		if signed := len(p.signed()); len(numbers) != 3 || signed < 4 || signed > 5 {
			t.Errorf("%d commands, signed for %v", len(numbers), p.signed())
		}
	})
}

func TestWhatWasSignedForARefusedCommandNeverLeaves(t *testing.T) {
	inWorldOfPen(t, &tampering{}, func(w *world, p *pen) {
		w.answers(0, 0, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		w.claimed(telematics.MaxBudget) // has the lane
		_, err = w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandInProgress)
		synctest.Wait()
		if sent := w.air.published(); len(sent) != 1 || len(p.signed()) != 2 {
			t.Errorf("published %v, signed for %v", sent, p.signed())
		}
	})
}
