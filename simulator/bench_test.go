package simulator

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

const (
	aUnit  telematics.Unit = "356938035643809"
	effort                 = 100 * time.Millisecond
)

var epoch = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// bench is a unit without a network, and with a clock that the test advances.
type bench struct {
	*Unit
	t      *testing.T
	key    signing.Key
	now    time.Time
	clock  Clock
	seq    int64
	waits  []due
	events []Event
	err    error // error of the memory
}

type due struct {
	at   time.Time
	lane telematics.Lane
}

func newBench(t *testing.T) *bench {
	t.Helper()
	body := Hatchback(munich)
	b := &bench{t: t, key: newKey(t), now: epoch, Unit: &Unit{
		serial: aUnit, actions: AllActions, body: &body, faults: &Faults{}, effort: effort, memory: &RAM{},
		rng: rand.New(rand.NewPCG(1, 2)),
	}}
	b.keys = b.key.Keyring()
	b.boot()
	return b
}

func newKey(t *testing.T) signing.Key {
	t.Helper()
	key, err := signing.NewKey()
	require.NoError(t, err)
	return key
}

// boot starts or restarts the unit, and returns its answers.
func (b *bench) boot() []telematics.Answer {
	b.t.Helper()
	b.waits = nil
	effects, err := b.Boot(b.clock.Read(b.now))
	require.NoError(b.t, err)
	return b.take(effects)
}

func (b *bench) take(e Effects) []telematics.Answer {
	for _, w := range e.Waits {
		b.waits = append(b.waits, due{b.now.Add(w.For), w.Lane})
	}
	b.events = append(b.events, e.Events...)
	b.err = e.Err
	return e.Answers
}

// command returns a valid command that is issued now and expires in ten seconds.
func (b *bench) command(action telematics.Action) telematics.Claims {
	b.seq++
	c := telematics.Claims{
		Command: uuid.New(), Unit: aUnit, Action: action, Lane: action.Lane(), Seq: b.seq,
		IssuedAt: b.now, Expires: b.now.Add(10 * time.Second),
	}
	if action == telematics.AttentionSignal {
		c.Attention = &telematics.Attention{Signal: telematics.Horn, Duration: telematics.DefaultPulse}
	}
	return c
}

// send delivers a command and returns the immediate answers of the unit.
func (b *bench) send(c telematics.Claims) []telematics.Answer {
	b.t.Helper()
	return b.deliver(sign(b.t, b.key, c))
}

func (b *bench) deliver(message []byte) []telematics.Answer {
	return b.take(b.Receive(b.clock.Read(b.now), message, false))
}

func sign(t *testing.T, key signing.Key, c telematics.Claims) []byte {
	t.Helper()
	message, err := key.Sign(c)
	require.NoError(t, err)
	return message
}

// pass advances the time, and returns the answers of the unit.
func (b *bench) pass(d time.Duration) []telematics.Answer {
	end := b.now.Add(d)
	var said []telematics.Answer
	for {
		i := b.next(end)
		if i < 0 {
			break
		}
		next := b.waits[i]
		b.waits = slices.Delete(b.waits, i, i+1)
		b.now = next.at
		said = append(said, b.take(b.Continue(b.clock.Read(b.now), next.lane))...)
	}
	b.now = end
	return said
}

func (b *bench) next(end time.Time) int {
	first := -1
	for i, w := range b.waits {
		if !w.at.After(end) && (first < 0 || w.at.Before(b.waits[first].at)) {
			first = i
		}
	}
	return first
}

// order sends a command and returns its final answer.
func (b *bench) order(c telematics.Claims) telematics.Answer {
	b.t.Helper()
	for _, a := range append(b.send(c), b.pass(6*time.Second)...) {
		if a.Command == c.Command && a.State.IsFinal() {
			return a
		}
	}
	b.t.Fatalf("%s got no final answer", c.Action)
	return telematics.Answer{}
}

func (b *bench) starts() int { return count(b.events, CommandStarted) }

func count(events []Event, kind Kind) int {
	return len(slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return e.Kind != kind }))
}

// says checks the state, reason and detail of an answer.
func says(t *testing.T, got telematics.Answer, state telematics.State, reason, detail string) {
	t.Helper()
	if got.State != state || got.Reason != reason || got.Detail != detail {
		t.Errorf("the answer is %s %q %q, want %s %q %q", got.State, got.Reason, got.Detail, state, reason, detail)
	}
}

// saysOnce checks that there is exactly one answer.
func saysOnce(t *testing.T, got []telematics.Answer, state telematics.State, reason, detail string) {
	t.Helper()
	if len(got) != 1 {
		t.Fatalf("got %d answers, want one: %+v", len(got), got)
	}
	says(t, got[0], state, reason, detail)
}
