package link_test

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// RabbitMQ, NATS and aedes accept a shared subscription as if it were an ordinary topic.
func TestProbe_BrokerWithoutSharedSubscriptionsIsNotReady(t *testing.T) {
	t.Parallel()
	var deaf atomic.Bool
	deaf.Store(true)
	server, err := devstack.StartMQTT(devstack.MQTTConfig{ServicePassword: linktest.ServicePassword, NothingShared: deaf.Load})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	var log brokertest.Log
	link := startLinkWith(t, server.ServiceURL(), &receiver{}, func(c *link.Config) {
		c.ConnectTimeout, c.Logger = 500*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
	})

	cause := func(line string) int {
		n := 0
		for entry := range strings.Lines(log.String()) {
			if strings.Contains(entry, "connection="+line) && strings.Contains(entry, "delivers nothing through it") &&
				strings.Contains(entry, "mosquitto/README.md") {
				n++
			}
		}
		return n
	}
	brokertest.Eventually(t, 30*time.Second, "the log has the cause once for each connection", func() bool {
		if link.Ready() == nil {
			t.Fatal("ready, although answers would not be received")
		}
		return cause("answers") == 1 && cause("telemetry") == 1 && cause("presence") == 1
	})
	if err := link.Publish(command([]byte("lock"))); err == nil {
		t.Error("published a command, although its answer would not be received")
	}
	if err := link.AllReady(); err == nil || !strings.Contains(err.Error(), "(answers): the MQTT broker granted a shared subscription") ||
		!strings.Contains(err.Error(), "(presence)") {
		t.Errorf("AllReady: %v; want the cause for answers, telemetry and presence", err)
	}
	deaf.Store(false)
	brokertest.Eventually(t, 30*time.Second, "ready", func() bool { return link.AllReady() == nil })
}

// Probes are separate for each instance: other members of the group and subscribers of all presence
// do not get them.
func TestProbe_ManyInstancesDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	heard := make([]receiver, 6)
	var ready sync.WaitGroup
	for i := range heard {
		link := startLink(t, server.ServiceURL(), &heard[i])
		ready.Go(func() {
			for deadline := time.Now().Add(time.Minute); link.AllReady() != nil; time.Sleep(2 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Error("an instance did not become ready")
					return
				}
			}
		})
	}
	ready.Wait()
	for i := range heard {
		if n := heard[i].presence.Load() + heard[i].answers.Load() + heard[i].reports.Load(); n != 0 {
			t.Errorf("instance %d got %d probes as messages of units, want none", i, n)
		}
	}
}
