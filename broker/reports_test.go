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

// [TEL-5] A unit without a clock, or with one that is ahead, sends what it could not send before.
func TestReports_WithoutATimeCountInTheirOrder(t *testing.T) {
	for _, at := range []string{``, `"at":"1970-01-01T00:00:00Z",`, `"at":"2999-01-01T00:00:00Z",`} {
		for _, locked := range []bool{true, false} {
			inWorld(t, 1, func(w *world) {
				for _, is := range []bool{!locked, locked, !locked, locked} {
					w.brokers[0].Report(brokertest.Said(unit, fmt.Appendf(nil, `{%s"telemetry":{"is_locked":%t}}`, at, is), false))
				}
				time.Sleep(time.Second)
				twin, err := w.Twin(w.Context(), car)
				if is := twin.Snapshot.Flag(telematics.IsLocked); err != nil || is == nil || *is != locked {
					t.Errorf("reports with %q: %+v, %v; want locked %t", at, twin.Snapshot, err, locked)
				}
			})
		}
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
