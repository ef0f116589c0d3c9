package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// reportWith is a report with the results of commands.
func reportWith(answers ...telematics.Answer) []byte {
	return v1.EncodeReport(telematics.Report{At: time.Now(), Answers: answers})
}

func TestReportedResult_SettlesACommandWhoseAnswerWasLost(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.mqtt.car = func(p publication) {
			time.Sleep(3 * time.Second)
			done := telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()}
			w.reports(1, telematics.Report{
				At: time.Now(), Values: map[telematics.Field]any{telematics.IsLocked: true},
				Answers: []telematics.Answer{done},
			})
		}
		start := time.Now()
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if took := time.Since(start); c.Late || took < 3*time.Second || took > 3100*time.Millisecond {
			t.Errorf("after %v: %+v; want a success after 3 s that is not late", time.Since(start), c)
		}
		if r := c.Reported; r == nil || r.Values[telematics.IsLocked] != true || r.Answers != nil {
			t.Errorf("the report that settled the command is not its report: %+v", r)
		}
	})
}

func TestReportedResult_SettlesAnUnknownCommand(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		done := telematics.Answer{Command: c.ID, State: telematics.Failed, Reason: "interrupted", At: time.Now()}
		for range 3 { // each report repeats it
			w.brokers[0].Report(brokertest.Said(unit, reportWith(done), false))
			time.Sleep(time.Second)
		}
		if c := w.record(c.ID); c.State != telematics.Failed || !c.Late || c.Reason != "interrupted" {
			t.Errorf("recorded %+v, want a late failure", c)
		}
		w.wantEntries(telematics.CommandTimeout, telematics.CommandFailed)
		if n := metric(t, w.brokers[0], "motorpool_answers_recalled_total"); n != 1 {
			t.Errorf("looked up %d times, want once", n)
		}
	})
}

func TestRefusal_IsInTheAuditLogBeforeTheInstanceStops(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.Break(errUnavailable, "Twin", "Add")
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		w.Break(nil, "Twin", "Add")
		w.stops[0]()
		w.wantEntries(telematics.TelematicsUnavailable)
	})
}

func TestReportedResult_OfAWholeFleetIsLookedUpOnce(t *testing.T) {
	const fleet, results = 1000, 8
	reports := make([][]byte, fleet)
	for i := range reports {
		var answers []telematics.Answer
		for range results {
			answers = append(answers, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
		}
		reports[i] = reportWith(answers...)
	}
	inWorld(t, 1, func(w *world) {
		for round := range 2 {
			for i, r := range reports {
				w.brokers[0].Report(brokertest.Said(telematics.Unit(fmt.Sprintf("car-%d", i)), r, false))
				if i%8 == 0 { // not faster than they can be settled
					time.Sleep(10 * time.Millisecond)
				}
			}
			time.Sleep(time.Second)
			if n := metric(t, w.brokers[0], "motorpool_answers_recalled_total"); n != fleet*results {
				t.Errorf("after round %d: looked up %d results, want %d", round+1, n, fleet*results)
			}
		}
	})
}

func TestReportedResult_InventedOnesDoNotDisplaceOtherUnits(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		for range 3000 {
			var invented []telematics.Answer
			for range 8 {
				invented = append(invented, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
			}
			w.brokers[0].Report(brokertest.Said("hostile", reportWith(invented...), false))
		}
		w.brokers[0].Report(
			brokertest.Said(unit, reportWith(telematics.Answer{Command: c.ID, State: telematics.Succeeded, At: time.Now()}), false),
		)
		time.Sleep(time.Second)
		if c := w.record(c.ID); c.State != telematics.Succeeded {
			t.Errorf("recorded %+v, want succeeded", c)
		}
		if n := metric(t, w.brokers[0], `motorpool_dropped_total{kind="recalled_answer", reason="queue_full"}`); n == 0 {
			t.Error("nothing was dropped: the queue did not overflow")
		}
	})
}
