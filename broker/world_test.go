package broker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

func TestMain(m *testing.M) {
	if require.Race {
		// It crashes where timers of one bubble of synctest expire on two threads at the same time
		// (https://github.com/golang/go/issues/78156). One run in three did.
		runtime.GOMAXPROCS(1)
	}
	goleak.VerifyTestMain(m)
}

const (
	car  = telematics.VehicleID(42)
	unit = telematics.Unit("358240051111110")
)

var today = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

var admin = telematics.Actor{Subject: "admin-7", Role: telematics.Admin}

// world is a fleet, in virtual time, with as many instances of the broker as a test needs.
type world struct {
	*testing.T
	*brokertest.Memory
	mqtt    *publisher
	brokers []*broker.Broker
	stops   []func() // of each instance; returns when it has stopped
	log     brokertest.Log
}

// wiring replaces ports of one instance. Nil replaces none.
type wiring func(*brokertest.Memory, *broker.Config)

// clockAhead returns the wiring of an instance whose clock is ahead, and to which all others live.
func clockAhead(by time.Duration) wiring {
	return func(_ *brokertest.Memory, c *broker.Config) {
		c.Now = func() time.Time { return time.Now().Add(by) }
		c.Lives = func(string) bool { return true }
	}
}

// inWorld runs a test in virtual time with a number of instances.
func inWorld(t *testing.T, instances int, test func(w *world)) {
	t.Helper()
	inWorldOf(t, make([]wiring, instances), test)
}

// inWorldOf runs a test with an instance for each wiring. All share one memory.
func inWorldOf(t *testing.T, wirings []wiring, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Virtual time starts in 2000, a year that is not accepted from a unit [TEL-5].
		time.Sleep(time.Until(today))
		key, err := signing.NewKey()
		require.NoError(t, err)
		w := &world{T: t, Memory: brokertest.NewMemory(healthy()), mqtt: &publisher{ring: key.Keyring()}}
		for _, replace := range wirings {
			w.start(replace, key)
		}
		defer func() {
			w.mqtt.cars.Wait()
			for _, stop := range w.stops {
				stop()
			}
		}()
		synctest.Wait()
		test(w)
	})
}

// start runs one more instance.
func (w *world) start(replace wiring, key telematics.Signer) {
	c := w.Config()
	c.Publisher, c.Key, c.Dialects = w.mqtt, key, spoken
	c.Logger = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if replace != nil {
		replace(w.Memory, &c)
	}
	b := broker.New(c)
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(w, b.Run(ctx), "Run")
	})
	w.brokers = append(w.brokers, b)
	w.stops = append(w.stops, func() { cancel(); running.Wait() })
}

func healthy() telematics.Twin {
	return telematics.Twin{
		Vehicle: telematics.Vehicle{ID: car, AgencyID: 1, Unit: unit, Status: telematics.Available, Actions: telematics.ControlActions},
		Contact: telematics.Contact{Status: telematics.Online, LastSeen: time.Now()},
	}
}

func (w *world) order(action telematics.Action) delivery.Order {
	return delivery.Order{Vehicle: car, Action: action, Actor: admin, RequestID: uuid.New()}
}

// send sends through the first instance.
func (w *world) send(action telematics.Action) (telematics.Command, *telematics.Error) {
	return w.sendVia(0, w.order(action))
}

func (w *world) sendVia(instance int, order delivery.Order) (telematics.Command, *telematics.Error) {
	w.Helper()
	r, err := w.brokers[instance].Send(w.Context(), &order)
	var refused *telematics.Error
	if err != nil && !errors.As(err, &refused) {
		w.Fatalf("Send returned %T (%v), want a *telematics.Error", err, err)
	}
	return commandOf(r), refused
}

// commandOf returns the command of a receipt, zero where the order was refused.
func commandOf(r delivery.Receipt) telematics.Command {
	if r.Command == nil {
		return telematics.Command{}
	}
	return *r.Command
}

// answers makes the car answer each publication through an instance after a delay.
func (w *world) answers(instance int, after time.Duration, state telematics.State) {
	w.mqtt.car = func(p publication) {
		time.Sleep(after)
		w.answer(instance, unit, telematics.Answer{Command: p.claims.Command, State: state, At: time.Now()})
	}
}

func (w *world) answer(instance int, from telematics.Unit, a telematics.Answer) {
	w.brokers[instance].Answer(brokertest.Said(from, v1.EncodeAnswer(a), false))
}

// reports delivers a report of the car to an instance.
func (w *world) reports(instance int, r telematics.Report) {
	w.brokers[instance].Report(brokertest.Said(unit, v1.EncodeReport(r), false))
}

// says delivers a presence of the car to an instance.
func (w *world) says(instance int, p telematics.Presence) {
	w.brokers[instance].Presence(brokertest.Said(unit, v1.EncodePresence(p), false))
}

func (w *world) record(id telematics.CommandID) telematics.Command {
	w.Helper()
	c, err := w.Commands.Command(w.Context(), id)
	require.NoError(w, err)
	return c
}

func (w *world) wantCode(got *telematics.Error, want telematics.Code) {
	w.Helper()
	switch {
	case got == nil && want != "":
		w.Fatalf("no error, want %s", want)
	case got != nil && got.Code != want:
		w.Fatalf("error %v, want code %q", got, want)
	}
}

// wantEntries compares the codes of the audit log, oldest first; a success has none.
func (w *world) wantEntries(want ...telematics.Code) {
	w.Helper()
	var got []telematics.Code
	for _, line := range w.Entries() {
		got = append(got, line.Code)
	}
	if len(got) != len(want) {
		w.Fatalf("the audit log has the codes %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			w.Fatalf("the audit log has the codes %q, want %q", got, want)
		}
	}
}

// publisher records publications, and delivers them to a car.
type publisher struct {
	ring signing.Keyring
	car  func(publication) // runs concurrently; nil: no car receives

	cars     sync.WaitGroup
	mu       sync.Mutex
	down     error // of Ready
	refusing error // of Publish
	sent     []publication
}

type publication struct {
	at      time.Time
	topic   string
	message []byte
	qos     byte
	claims  telematics.Claims // zero: not signed
}

func (a *publisher) Ready(telematics.Unit) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.down
}

func (a *publisher) Publish(t telematics.Transmission) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusing != nil {
		return a.refusing
	}
	p := publication{at: time.Now(), topic: t.Topic, message: bytes.Clone(t.Payload), qos: t.QoS}
	if !strings.HasPrefix(t.Topic, vanTopic) && !strings.HasPrefix(t.Topic, flagRoot) {
		claims, err := a.ring.Verify(t.Payload)
		if err != nil {
			return err
		}
		p.claims = claims
	}
	a.sent = append(a.sent, p)
	if a.car != nil {
		car := a.car
		a.cars.Go(func() { car(p) })
	}
	return nil
}

func (a *publisher) fail(ready, publish error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down, a.refusing = ready, publish
}

func (a *publisher) published() []publication {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]publication(nil), a.sent...)
}
