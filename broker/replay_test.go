package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/broker/ingest"
	mqttlink "motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// slowTwins is a slow store that records which units were observed.
type slowTwins struct {
	ingest.Twins
	mu    sync.Mutex
	units map[telematics.Unit]bool
}

func (s *slowTwins) Observe(_ context.Context, all []delivery.Observation) (delivery.Seen, error) {
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range all {
		s.units[o.Unit] = true
	}
	return delivery.Seen{}, nil
}

func (s *slowTwins) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.units)
}

// mqttServer is an MQTT broker with the access rules of production.
type mqttServer interface {
	UnitsURL() string
	ServiceURL() string
}

// fleetMQTT is an MQTT broker that retains the presence of a fleet.
func fleetMQTT(t *testing.T, real bool, fleet int) mqttServer {
	t.Helper()
	passwords := map[string]string{}
	for i := range fleet {
		passwords[fmt.Sprintf("unit-%d", i)] = linktest.UnitPassword
	}
	if !real {
		server, err := devstack.StartMQTT(devstack.MQTTConfig{
			ServicePassword: linktest.ServicePassword,
			UnitPassword:    func(user string) (string, bool) { p, ok := passwords[user]; return p, ok },
		})
		require.NoError(t, err)
		t.Cleanup(func() { _ = server.Close() })
		return server
	}
	devstack.NeedServer(t, devstack.MosquittoServer)
	server, err := devstack.StartMosquitto(
		devstack.MosquittoConfig{Dir: t.TempDir(), Units: passwords, ServicePassword: linktest.ServicePassword},
	)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func TestPresence_DroppedByAFullQueueIsReadAgain(t *testing.T) {
	t.Parallel()
	const fleet, queue = 120, 8
	for name, real := range map[string]bool{"embedded": false, "mosquitto": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fleetMQTT(t, real, fleet)
			units := make([]telematics.Unit, fleet)
			for i := range units {
				units[i] = telematics.Unit(fmt.Sprintf("unit-%d", i))
				publishRetained(t, server.UnitsURL(), units[i])
			}
			c := brokertest.NewMemory().Config()
			m := &slowTwins{Twins: c.Twins, units: map[telematics.Unit]bool{}}
			logger := slog.New(slog.NewTextHandler(t.Output(), nil))
			link := mqttlink.NewShards(mqttlink.Config{
				Username: mosquitto.ServiceUser, Password: linktest.ServicePassword,
				Group: func(context.Context) (string, error) { return "motorpool-0123456789abcdef", nil },
				Units: func(_ context.Context, after telematics.Unit, limit int) ([]telematics.Unit, error) {
					rest := units[slices.Index(units, after)+1:]
					return rest[:min(len(rest), limit)], nil
				},
				CatchUpAfter: 50 * time.Millisecond, Logger: logger,
			}, []string{server.ServiceURL()})
			c.Twins, c.Publisher, c.QueueSize, c.Logger = m, link, queue, logger
			b := broker.New(c)
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = b.Run(ctx) })
			running.Go(func() { _ = link.Run(ctx, b) })
			defer running.Wait()
			defer stop()
			brokertest.Eventually(t, time.Minute, "the presence of the whole fleet is taken", func() bool { return m.count() == fleet })
			if n := metric(t, b, `motorpool_dropped_total{kind="presence", reason="queue_full"}`); n == 0 {
				t.Error("no presence was dropped: the queue did not overflow")
			}
		})
	}
}

func publishRetained(t *testing.T, url string, of telematics.Unit) {
	t.Helper()
	client := linktest.Connect(t, url, of)
	online := v1.EncodePresence(telematics.Presence{Status: telematics.Online, Session: "0123456789abcdef", At: time.Now()})
	linktest.Publish(t, client, v1.PresenceChannel.Topic(of), true, string(online))
	client.Disconnect(0)
}
