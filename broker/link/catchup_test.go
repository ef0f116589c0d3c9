package link_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/mosquitto"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// startInstance runs a link until stop is called, and returns when it is connected.
func startInstance(t *testing.T, url string, to link.Receiver) (stop func()) {
	t.Helper()
	l := link.New(link.Config{
		Nodes: []string{url}, Username: mosquitto.ServiceUser, Password: linktest.ServicePassword,
		Group: func(context.Context) (string, error) { return "motorpool-0123456789abcdef", nil },
		Units: only("another", unit), CatchUpAfter: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := l.Run(ctx, to); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	awaitReady(t, l)
	return stop
}

func TestRetainedPresenceIsReadWhereNoInstanceHasHeardIt(t *testing.T) {
	overBothBrokers(t, func(t *testing.T, server mqttServer) {
		car := linktest.Connect(t, server.UnitsURL(), unit)
		say := func() {
			t.Helper()
			linktest.Publish(t, car, v1.PresenceChannel.Topic(unit), true, presence(telematics.Online, "session"))
		}
		say()
		var first, second, third ears
		stopFirst := startInstance(t, server.ServiceURL(), &first)
		brokertest.Eventually(t, 10*time.Second, "the first instance reads it", func() bool { return first.retained.Load() == 1 })
		time.Sleep(500 * time.Millisecond) // it is complete then

		stopSecond := startInstance(t, server.ServiceURL(), &second)
		time.Sleep(2 * time.Second) // it would have asked in vain
		if n := second.presence.Load(); n != 0 {
			t.Errorf("%d messages were read, though another instance has heard all", n)
		}
		say()
		brokertest.Eventually(t, 10*time.Second, "both hear what is said", func() bool { return first.presence.Load() == 2 && second.presence.Load() == 1 })

		stopFirst()
		stopSecond()
		say() // while no instance is connected
		startInstance(t, server.ServiceURL(), &third)
		brokertest.Eventually(t, 10*time.Second, "the third instance reads it", func() bool { return third.retained.Load() == 1 })
	})
}

// fullEars takes no presence until there is room.
type fullEars struct {
	ears
	room    atomic.Bool
	refused atomic.Int64
}

func (e *fullEars) Presence(m telematics.Message) bool {
	if !e.room.Load() {
		e.refused.Add(1)
		return false
	}
	return e.ears.Presence(m)
}

// A live presence that did not fit, as while Postgres is unavailable, is retained by the MQTT
// broker.
func TestPresenceThatDidNotFitIsReadAgain(t *testing.T) {
	server := embeddedMQTT(t, "")
	var to fullEars
	startInstance(t, server.ServiceURL(), &to)
	time.Sleep(1500 * time.Millisecond) // nothing is retained
	car := linktest.Connect(t, server.UnitsURL(), unit)
	linktest.Publish(t, car, v1.PresenceChannel.Topic(unit), true, presence(telematics.Online, "session"))
	brokertest.Eventually(t, 10*time.Second, "read again and again", func() bool { return to.refused.Load() > 2 })
	to.room.Store(true)
	brokertest.Eventually(t, 10*time.Second, "taken", func() bool { return to.retained.Load() == 1 })
	time.Sleep(300 * time.Millisecond)
	if n := to.presence.Load(); n != 1 {
		t.Errorf("taken %d times", n)
	}
}
