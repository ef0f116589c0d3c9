package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/telematics"
)

// sent reads a message as the broker and then the service do.
func sent(t *testing.T, r *report, now time.Time) (*packets.PublishPacket, telematics.Report) {
	t.Helper()
	packet, err := packets.ReadPacket(bytes.NewReader(r.message))
	if err != nil {
		t.Fatal(err)
	}
	publish := packet.(*packets.PublishPacket)
	report, dropped, err := telematics.DecodeReport(publish.Payload, now)
	if err != nil || len(dropped) > 0 {
		t.Fatalf("%v, dropped %v of %s", err, dropped, publish.Payload)
	}
	return publish, report
}

func TestAReportIsWholeAndSound(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	r, err := reportOf(unitOf(42))
	if err != nil {
		t.Fatal(err)
	}
	for _, sequence := range []int{1, 9, 10, 4711, 99_999, 123_456, maxSequence} {
		r.become(sequence, instant(now), 513)
		publish, report := sent(t, r, now)
		if publish.TopicName != telematics.TelemetryChannel.Topic(unitOf(42)) || publish.MessageID != 513 || publish.Qos != 1 || publish.Retain {
			t.Errorf("%s", publish)
		}
		if len(publish.Payload) != reportSize {
			t.Errorf("%d bytes", len(publish.Payload))
		}
		if !report.At.Equal(now) || report.Values[telematics.LocatedAt] == nil {
			t.Errorf("at %v, located at %v; want %v", report.At, report.Values[telematics.LocatedAt], now)
		}
		mileage, ok := report.Values[telematics.MileageKm].(float64)
		if !ok || mileage != mileageOf(sequence) || sequenceOf(mileage) != sequence {
			t.Errorf("report %d has mileage %v", sequence, report.Values[telematics.MileageKm])
		}
	}
}

func TestAVehicleMovesFromOneReportToTheNext(t *testing.T) {
	now := time.Now().UTC()
	r, err := reportOf(unitOf(1))
	if err != nil {
		t.Fatal(err)
	}
	r.become(1, instant(now), 1)
	_, first := sent(t, r, now)
	r.become(2, instant(now.Add(50*time.Millisecond)), 2)
	_, second := sent(t, r, now)
	for _, field := range []telematics.Field{
		telematics.Latitude, telematics.Longitude, telematics.Heading, telematics.LocatedAt, telematics.SpeedKmh, telematics.MileageKm,
	} {
		if first.Values[field] == second.Values[field] {
			t.Errorf("%s stays %v", field, first.Values[field])
		}
	}
}
