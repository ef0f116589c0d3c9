package broker_test

import (
	"fmt"
	"testing"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

func TestAUnitThatFillsItsQueueTakesNoRoomFromTheOthers(t *testing.T) {
	b := broker.New(broker.Config{}) // nothing is read from its queues before Run
	large := brokertest.Said("flooding", make([]byte, telematics.MaxMessage), false)
	for b.Counts.Get("reports_dropped") == 0 {
		b.Report(large)
	}
	const others = 200
	for n := range others {
		b.Report(brokertest.Said(telematics.Unit(fmt.Sprintf("unit-%d", n)), []byte(`{}`), false))
	}
	if dropped := b.Counts.Get("reports_dropped") - 1; dropped > others*3/4 {
		t.Errorf("reports of %d of %d other units were dropped", dropped, others)
	}
}
