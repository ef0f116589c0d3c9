package link_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/internal/assert"
	"motorpool/mosquitto"
)

func TestLink_PassesOnWhatTheMQTTBrokerHolds(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var mu sync.Mutex
	held := map[string]float64{}
	l := link.New(link.Config{
		Nodes: []string{server.ServiceURL()}, Username: mosquitto.ServiceUser, Password: linktest.ServicePassword,
		Group:  func(context.Context) (string, error) { return "motorpool-0123456789abcdef", nil },
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Holds: func(node, topic string, value float64) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(server.ServiceURL(), node) {
				held[topic] = value
			}
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(t, l.Run(ctx, &receiver{}), "Run")
	})
	t.Cleanup(func() { stop(); running.Wait() })
	brokertest.Eventually(t, 30*time.Second, "memory and retained messages", func() bool {
		mu.Lock()
		defer mu.Unlock()
		_, counted := held[link.System.Retained]
		return counted && held[link.System.Heap] > 0
	})
}
