package simulator

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

// fakeRadio is a network in memory, in virtual time.
type fakeRadio struct {
	mu     sync.Mutex // guards the fields below
	refuse bool
	dials  []time.Time
	links  []*fakeLink
}

type fakeLink struct {
	Login
	deliver func(Message)
	lost    chan struct{}

	mu     sync.Mutex // guards the fields below
	said   []spoken
	broken bool
	closed bool
	cut    bool
}

// spoken is a message that a unit published.
type spoken struct {
	at       time.Time
	channel  v1.Channel
	payload  []byte
	retained bool
}

var errNoNetwork = errors.New("no network")

func (r *fakeRadio) Dial(ctx context.Context, login Login, deliver func(Message)) (Connection, error) {
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials = append(r.dials, time.Now())
	if r.refuse {
		return nil, errNoNetwork
	}
	l := &fakeLink{Login: login, deliver: deliver, lost: make(chan struct{})}
	r.links = append(r.links, l)
	return l, nil
}

// link returns the latest connection, or nil.
func (r *fakeRadio) link() *fakeLink {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.links) == 0 {
		return nil
	}
	return r.links[len(r.links)-1]
}

func (r *fakeRadio) setRefuse(refuse bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

func (r *fakeRadio) attempts() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dials)
}

func (l *fakeLink) Publish(channel v1.Channel, payload []byte, retained bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return errNoNetwork
	}
	l.said = append(l.said, spoken{time.Now(), channel, payload, retained})
	return nil
}

func (l *fakeLink) Lost() <-chan struct{} { return l.lost }
func (l *fakeLink) Close()                { l.end(func() { l.closed = true }) }
func (l *fakeLink) Cut()                  { l.end(func() { l.cut = true }) }

func (l *fakeLink) end(how func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.broken {
		l.broken = true
		how()
		close(l.lost)
	}
}

// lose breaks the connection from the side of the network.
func (l *fakeLink) lose() { l.end(func() {}) }

// jam makes the socket refuse every message before either side has detected the loss.
func (l *fakeLink) jam() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
}

func (l *fakeLink) on(channel v1.Channel) []spoken {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.said), func(s spoken) bool { return s.channel != channel })
}

func (l *fakeLink) presences(t *testing.T) []telematics.Presence {
	t.Helper()
	var list []telematics.Presence
	for _, s := range l.on(v1.PresenceChannel) {
		p, err := v1.DecodePresence(s.payload, time.Now())
		if err != nil || !s.retained {
			t.Fatalf("presence %s, retained %t: %v", s.payload, s.retained, err)
		}
		list = append(list, p)
	}
	return list
}

func (l *fakeLink) answers(t *testing.T) []telematics.Answer {
	t.Helper()
	var list []telematics.Answer
	for _, s := range l.on(v1.AckChannel) {
		a, dropped, err := v1.DecodeAnswer(s.payload, time.Now())
		if err != nil || len(dropped) != 0 || s.retained {
			t.Fatalf("answer %s: %v, dropped %v, retained %t", s.payload, err, dropped, s.retained)
		}
		list = append(list, a)
	}
	return list
}

func (l *fakeLink) reports(t *testing.T) []telematics.Report {
	t.Helper()
	var list []telematics.Report
	for _, s := range l.on(v1.TelemetryChannel) {
		r, dropped, err := v1.DecodeReport(s.payload, time.Now())
		if err != nil || len(dropped) != 0 || s.retained {
			t.Fatalf("report %s: %v, dropped %v, retained %t", s.payload, err, dropped, s.retained)
		}
		list = append(list, r)
	}
	return list
}

// road is a car in virtual time, connected to a fake radio.
type road struct {
	*testing.T
	car      *Car
	radio    *fakeRadio
	recorder *Recorder
	key      signing.Key
	seq      int64
	stop     func() // ends Run, and waits until it returned
}

// onTheRoad runs a test in virtual time, with a car that has just connected unless it cannot.
func onTheRoad(t *testing.T, config Config, test func(road *road)) {
	t.Helper()
	key := newKey(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch)) // virtual time begins in 2000, which receivers refuse
		r := &road{T: t, radio: &fakeRadio{}, recorder: &Recorder{}, key: key}
		config.Unit, config.Keyring, config.Radio, config.Recorder = aUnit, key.Keyring(), r.radio, r.recorder
		r.car = NewCar(config)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.car.Run(ctx) }()
		r.stop = sync.OnceFunc(func() {
			cancel()
			assert.NoError(t, <-done, "Run")
		})
		defer r.stop()
		r.wait(100 * time.Millisecond)
		test(r)
	})
}

func (r *road) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// send publishes a command with a time limit, and returns it.
func (r *road) send(action telematics.Action, budget time.Duration) telematics.Claims {
	r.Helper()
	r.seq++
	c := telematics.Claims{
		Command: newID(), Unit: aUnit, Action: action, Lane: action.Lane(), Seq: r.seq,
		IssuedAt: time.Now(), Expires: time.Now().Add(budget),
	}
	r.publish(c)
	return c
}

func (r *road) publish(c telematics.Claims) {
	r.Helper()
	r.radio.link().deliver(Message{Payload: sign(r.T, r.key, c)})
}
