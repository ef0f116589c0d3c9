package broker_test

import (
	"fmt"
	"testing"
	"time"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// BenchmarkReceive measures what dialects add to each message: the topic is parsed through the
// interface, and the message passed by value.
func BenchmarkReceive(b *testing.B) {
	topics := make([]string, 1000)
	for i := range topics {
		topics[i] = v1.TelemetryChannel.Topic(telematics.Unit(fmt.Sprintf("35824005%07d", i)))
	}
	queue := make(chan telematics.Message, 1)
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			u, _, err := v1.ParseTopic(topics[i%len(topics)])
			if err != nil {
				b.Fatal(err)
			}
			queue <- telematics.Message{Unit: u}
			<-queue
		}
	})
	b.Run("dialect", func(b *testing.B) {
		d, _ := spoken.Find("")
		b.ReportAllocs()
		for i := range b.N {
			u, subject, err := d.ParseTopic(topics[i%len(topics)])
			if err != nil {
				b.Fatal(err)
			}
			queue <- telematics.Message{Dialect: d, Unit: u, Subject: subject}
			<-queue
		}
	})
}

// BenchmarkDecodeReport measures the decoding of a report, directly and through its dialect.
func BenchmarkDecodeReport(b *testing.B) {
	now := time.Now()
	payload := v1.EncodeReport(telematics.Report{At: now, Values: map[telematics.Field]any{
		telematics.Latitude: 48.1371, telematics.Longitude: 11.5754, telematics.SpeedKmh: 48.5, telematics.MileageKm: 15230.4,
		telematics.Ignition: "on", telematics.IsLocked: false, telematics.DoorFrontLeft: "closed", telematics.RSRP: -97.0,
	}})
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, _, err := v1.DecodeReport(payload, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("dialect", func(b *testing.B) {
		d, _ := spoken.Find("")
		m := telematics.Message{Dialect: d, Unit: unit, Payload: payload}
		b.ReportAllocs()
		for range b.N {
			if _, _, err := m.Dialect.DecodeReport(m, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
