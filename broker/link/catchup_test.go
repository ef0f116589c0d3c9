package link_test

import (
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// startInstance runs a link until stop is called. It returns when the link is ready.
func startInstance(t *testing.T, url string, to link.Receiver) (stop func()) {
	t.Helper()
	l, stop := startStoppable(t, url, to, func(c *link.Config) {
		c.Units, c.CatchUpAfter = only("another", unit), 50*time.Millisecond
	})
	awaitReady(t, l)
	return stop
}

func TestCatchUp_ReadsRetainedPresenceOnceForAllInstances(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	car := linktest.Connect(t, server.UnitsURL(), unit)
	publish := func() {
		t.Helper()
		linktest.Publish(t, car, v1.PresenceChannel.Topic(unit), true, presence(telematics.Online, "session"))
	}
	publish()
	var first, second, third receiver
	stopFirst := startInstance(t, server.ServiceURL(), &first)
	brokertest.Eventually(t, 10*time.Second, "the first instance reads it", func() bool { return first.retained.Load() == 1 })
	time.Sleep(2 * time.Second) // then it has read all retained presence

	stopSecond := startInstance(t, server.ServiceURL(), &second)
	time.Sleep(2 * time.Second) // enough for a second reading
	if n := second.presence.Load(); n != 0 {
		t.Errorf("the second instance read %d messages, want none: the first one has read all", n)
	}
	// The embedded broker acknowledges a message before it delivers it, so the first instance
	// may have received the first one live, too.
	before := first.presence.Load()
	publish()
	brokertest.Eventually(
		t, 10*time.Second, "both instances get live presence",
		func() bool { return first.presence.Load() == before+1 && second.presence.Load() == 1 },
	)

	stopFirst()
	stopSecond()
	publish() // while no instance is connected
	startInstance(t, server.ServiceURL(), &third)
	brokertest.Eventually(t, 10*time.Second, "the third instance reads it", func() bool { return third.retained.Load() == 1 })
}

// fullReceiver refuses presence until there is room.
type fullReceiver struct {
	receiver
	room    atomic.Bool
	refused atomic.Int64
}

func (e *fullReceiver) Presence(m telematics.Message) bool {
	if !e.room.Load() {
		e.refused.Add(1)
		return false
	}
	return e.receiver.Presence(m)
}

// A live presence that is refused, as while Postgres is unavailable, is still retained by the MQTT
// broker.
func TestCatchUp_RefusedPresenceIsReadAgain(t *testing.T) {
	t.Parallel()
	server := embeddedMQTT(t, "")
	var to fullReceiver
	startInstance(t, server.ServiceURL(), &to)
	time.Sleep(1500 * time.Millisecond) // nothing is retained yet
	car := linktest.Connect(t, server.UnitsURL(), unit)
	linktest.Publish(t, car, v1.PresenceChannel.Topic(unit), true, presence(telematics.Online, "session"))
	brokertest.Eventually(t, 10*time.Second, "the presence is read repeatedly", func() bool { return to.refused.Load() > 2 })
	to.room.Store(true)
	brokertest.Eventually(t, 10*time.Second, "the presence is accepted", func() bool { return to.retained.Load() == 1 })
	time.Sleep(300 * time.Millisecond)
	if n := to.presence.Load(); n != 1 {
		t.Errorf("accepted %d times, want once", n)
	}
}
