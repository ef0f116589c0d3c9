package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/ovms"
	v1 "motorpool/telematics/v1"
)

// module is the firmware's state: until when each watcher is active.
type module struct {
	until  map[string]time.Time
	begun  int
	ended  int
	latest time.Time // time of the last message
}

// world is a set of modules and of instances that watch them, in virtual time.
type world struct {
	t *testing.T

	mu      sync.Mutex
	modules map[telematics.Unit]*module
	booked  []telematics.Vehicle
	failing bool
	busiest int // the most messages in one second
	second  time.Time
	count   int
}

func newWorld(t *testing.T) *world {
	return &world{t: t, modules: map[telematics.Unit]*module{}}
}

// deliver simulates the MQTT broker and the firmware (IncomingMsg, AddClient, RemoveClient).
func (w *world) deliver(m telematics.Transmission) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing {
		return errors.New("not connected")
	}
	if now := time.Now().Truncate(time.Second); now.Equal(w.second) {
		w.count++
	} else {
		w.second, w.count = now, 1
	}
	w.busiest = max(w.busiest, w.count)
	rest, ok := strings.CutPrefix(m.Topic, fmt.Sprintf("ovms/%s/%s/client/", m.Unit, m.Unit))
	client, last, _ := strings.Cut(rest, "/")
	if !ok || last != "active" || m.QoS != 0 {
		w.t.Errorf("published to %q with QoS %d, want a watcher's topic and QoS 0", m.Topic, m.QoS)
	}
	unit := w.modules[m.Unit]
	if unit == nil {
		unit = &module{until: map[string]time.Time{}}
		w.modules[m.Unit] = unit
	}
	unit.latest = time.Now()
	if string(m.Payload) == "0" {
		delete(unit.until, client)
		unit.ended++
		return nil
	}
	unit.begun++
	unit.until[client] = time.Now().Add(120 * time.Second)
	return nil
}

func (w *world) read(context.Context, []telematics.Protocol) ([]telematics.Vehicle, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing {
		return nil, errors.New("not connected")
	}
	return slices.Clone(w.booked), nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// watchers returns how many watchers of a module are active.
func (w *world) watchers(unit telematics.Unit) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.modules[unit]; m != nil {
		for _, until := range m.until {
			if time.Now().Before(until) {
				n++
			}
		}
	}
	return n
}

func (w *world) want(n int, unit telematics.Unit, when string) {
	w.t.Helper()
	if got := w.watchers(unit); got != n {
		w.t.Errorf("%s: %d watchers of %s, want %d", when, got, unit, n)
	}
}

// instance runs an instance until stop is called.
func (w *world) instance(name string, turn bool) (watches *Watches, stop func()) {
	watches = New(Config{
		Dialects: telematics.Dialects{v1.Dialect{}, ovms.Dialect{}}, Publish: w.deliver, Watcher: name, Booked: w.read,
		TryLease: func(context.Context) (bool, error) { return turn, nil },
	})
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = watches.Run(ctx) })
	return watches, func() { cancel(); running.Wait() }
}

func leaf(unit telematics.Unit) telematics.Vehicle {
	return telematics.Vehicle{Unit: unit, Protocol: ovms.Protocol}
}

func TestWatches_LastUntilTheStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		watches, stop := w.instance("a", true)
		defer stop()
		first, second := watches.Begin(leaf("OV-1")), watches.Begin(leaf("OV-1"))
		time.Sleep(time.Second)
		w.want(1, "OV-1", "after a second")
		for range 30 { // it is renewed in time
			time.Sleep(time.Minute)
			w.want(1, "OV-1", "while it is watched")
		}
		if m := w.modules["OV-1"]; m.begun > 40 || m.ended > 0 {
			t.Errorf("%d renewals and %d ends in half an hour, want at most 40 and none", m.begun, m.ended)
		}
		first()
		first() // again
		time.Sleep(time.Minute)
		w.want(1, "OV-1", "one of two streams has ended")
		second()
		reopened := watches.Begin(leaf("OV-1"))
		time.Sleep(time.Minute)
		w.want(1, "OV-1", "another stream has begun")
		reopened()
		time.Sleep(linger + time.Second)
		w.want(0, "OV-1", "all streams have ended")
		if m := w.modules["OV-1"]; m.ended != 1 {
			t.Errorf("the watch ended %d times, want once", m.ended)
		}
		watches.Briefly(leaf("OV-1"))
		time.Sleep(briefly - time.Second)
		w.want(1, "OV-1", "after a status was refreshed")
		time.Sleep(linger + 2*time.Second)
		w.want(0, "OV-1", "a while after that")
		quiet := w.modules["OV-1"].latest
		time.Sleep(time.Hour)
		if w.modules["OV-1"].latest != quiet {
			t.Error("a message was sent to a unit that is not watched")
		}
	})
}

func TestWatches_OfAnotherInstanceAreNotEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		here, stopHere := w.instance("a", true)
		there, stopThere := w.instance("b", false)
		defer stopThere()
		end, endThere := here.Begin(leaf("OV-1")), there.Begin(leaf("OV-1"))
		time.Sleep(time.Second)
		w.want(2, "OV-1", "two instances watch")
		end()
		time.Sleep(10 * time.Second)
		w.want(1, "OV-1", "one of them has ended")
		here.Begin(leaf("OV-1"))
		time.Sleep(time.Second)
		w.want(2, "OV-1", "it watches again")
		stopHere() // it stops without ending its watch
		time.Sleep(121 * time.Second)
		w.want(1, "OV-1", "the watch of the stopped instance has expired")
		endThere()
		time.Sleep(10 * time.Second)
		w.want(0, "OV-1", "both have ended")
	})
}

func TestWatches_RunningBookingsAreWatchedByOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.instance("a", true)
		defer stop()
		_, stopOther := w.instance("b", false)
		defer stopOther()
		time.Sleep(time.Second)
		w.set(func() { w.booked = []telematics.Vehicle{leaf("OV-1"), {Unit: "CAR-1", Protocol: "v1"}} })
		time.Sleep(16 * time.Second)
		for range 10 {
			time.Sleep(time.Minute)
			w.want(1, "OV-1", "while the booking runs")
		}
		w.set(func() { w.failing = true })
		time.Sleep(40 * time.Second)
		w.set(func() { w.failing = false })
		time.Sleep(30 * time.Second)
		w.want(1, "OV-1", "after the servers were unavailable")
		w.set(func() { w.booked = nil })
		time.Sleep(readEvery + linger + time.Second)
		w.want(0, "OV-1", "the booking has ended")
		if len(w.modules) != 1 || w.modules["OV-1"].ended != 1 {
			t.Errorf("messages were sent to %v, want only OV-1, ended once", w.modules)
		}
	})
}

func TestWatches_SendNothingToUnitsThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		watches, stop := w.instance("a", true)
		defer stop()
		watches.Begin(telematics.Vehicle{Unit: "CAR-1"})()
		watches.Begin(telematics.Vehicle{Protocol: ovms.Protocol})()
		watches.Begin(telematics.Vehicle{Unit: "CAR-2", Protocol: "morse"})
		time.Sleep(time.Hour)
		if len(w.modules) > 0 {
			t.Errorf("messages were sent to %v, want none", w.modules)
		}
	})
}

// Running bookings are watched without gaps, at a bounded rate: a hundred thousand take half a
// minute, and these a fifth of that.
func TestWatches_OfALargeFleetStayWithinTheRate(t *testing.T) {
	const fleet, second = 20_000, int(time.Second / pace)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range fleet {
			w.booked = append(w.booked, leaf(telematics.Unit(fmt.Sprintf("OV-%d", i))))
		}
		_, stop := w.instance("a", true)
		defer stop()
		time.Sleep(6 * time.Second)
		for range 2 {
			time.Sleep(30 * time.Second)
			for i := 0; i < fleet; i += 997 {
				w.want(1, w.booked[i].Unit, "all are watched")
			}
		}
		if w.busiest > burst*(second+1) {
			t.Errorf("%d messages in a second, want at most %d", w.busiest, burst*(second+1))
		}
	})
}
