package broker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestFlood_OfReportsDropsNoOtherUnits(t *testing.T) {
	b := broker.New(broker.Config{}) // the queues are read only by Run
	large := brokertest.Said("flooding", make([]byte, telematics.MaxMessage), false)
	for metric(t, b, `motorpool_dropped_total{kind="report", reason="over_allowance"}`) == 0 {
		b.Report(large)
	}
	const others = 200
	for n := range others {
		b.Report(brokertest.Said(telematics.Unit(fmt.Sprintf("unit-%d", n)), []byte(`{}`), false))
	}
	if dropped := metric(t, b, `motorpool_dropped_total{kind="report", reason="queue_full"}`); dropped > 0 {
		t.Errorf("reports of %d of %d other units were dropped, want none", dropped, others)
	}
}

func TestReports_EachInAnotherProtocolIsCounted(t *testing.T) {
	x := &tampering{}
	x.observe = func(_ context.Context, observations []delivery.Observation) (delivery.Seen, error) {
		return delivery.Seen{Foreign: []telematics.Unit{unit}}, nil
	}
	inWorldOf(t, between(x), func(w *world) {
		for range 3 { // in one batch
			w.brokers[0].Report(brokertest.Said(unit, []byte(`{}`), false))
		}
		time.Sleep(time.Second)
		b := w.brokers[0]
		if foreign, merged := metric(t, b, "motorpool_protocol_mismatches_total"),
			metric(t, b, "motorpool_reports_merged_total"); foreign != 3 || merged != 0 {
			t.Errorf("%d protocol mismatches and %d merged reports, want 3 and 0", foreign, merged)
		}
	})
}
