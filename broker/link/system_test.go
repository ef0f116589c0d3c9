package link_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
)

func TestLink_PassesOnWhatTheMQTTBrokerHolds(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var mu sync.Mutex
	held := map[string]float64{}
	startLinkWith(t, server.ServiceURL(), &receiver{}, func(c *link.Config) {
		c.Holds = func(node, topic string, value float64) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(server.ServiceURL(), node) {
				held[topic] = value
			}
		}
	})
	brokertest.Eventually(t, 30*time.Second, "memory and retained messages", func() bool {
		mu.Lock()
		defer mu.Unlock()
		_, counted := held[link.System.Retained]
		return counted && held[link.System.Heap] > 0
	})
}
