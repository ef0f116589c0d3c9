package broker

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
)

// BenchmarkMetrics_OfACommand measures the metrics of one command: it is published, received and
// answered.
func BenchmarkMetrics_OfACommand(b *testing.B) {
	m := newMetrics(prometheus.NewRegistry(), func() int { return 0 }, func() int { return 0 })
	c := &telematics.Command{Action: telematics.Lock, State: telematics.Succeeded}
	b.ReportAllocs()
	for b.Loop() {
		m.publications.Inc()
		m.commandsPublished.Inc()
		m.answers.Inc()
		m.answers.Inc()
		m.answersSettled.Inc()
		m.eventsPublished.Add(4)
		m.settled(c, telematics.DefaultProtocol, 300*time.Millisecond)
	}
}
