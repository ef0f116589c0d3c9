package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestHalt_RefusesCommands(t *testing.T) {
	for name, test := range map[string]struct {
		halt   telematics.Halt
		halted bool
	}{
		"of all agencies":     {telematics.Halt{Why: "recall"}, true},
		"of the agency":       {telematics.Halt{Agency: 1, Why: "recall"}, true},
		"of another agency's": {telematics.Halt{Agency: 2, Why: "recall"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 2, func(w *world) {
				w.answers(0, time.Second, telematics.Succeeded)
				w.Halt(test.halt)
				time.Sleep(broker.HaltWithin)
				for instance := range 2 {
					_, err := w.sendVia(instance, w.order(telematics.Lock))
					if !test.halted {
						w.wantCode(err, "")
						continue
					}
					w.wantCode(err, telematics.CommandsHalted)
					if err.Outcome != telematics.NotExecuted || !err.Retryable || err.RetryAfter != time.Minute {
						t.Errorf("error %+v, want not executed, retry after a minute", err)
					}
				}
				if test.halted {
					w.wantEntries(telematics.CommandsHalted, telematics.CommandsHalted)
				}
				w.Halt()
				time.Sleep(broker.HaltWithin)
				_, err := w.send(telematics.Unlock)
				w.wantCode(err, "")
			})
		})
	}
}

func TestHalt_IsPublishedWhenItBeginsChangesAndEnds(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		var published []string
		set := func(halts ...telematics.Halt) {
			w.Halt(halts...)
			time.Sleep(time.Second)
			for _, e := range w.Events.All()[len(published):] {
				published = append(published, fmt.Sprintf("%s of %d: %t %s", e.Kind, e.Agency, e.Halt.InForce, e.Halt.Why))
			}
		}
		recall := telematics.Halt{Why: "recall", Since: today}
		theft := telematics.Halt{Agency: 2, Why: "theft", Since: today}
		set(recall, theft)
		theft.Why = "strike"
		set(recall, theft)
		set(theft)
		set(theft)
		var want []string
		for _, group := range [][]string{
			{"halt of 0: true recall", "halt of 2: true theft"}, {"halt of 2: true strike"}, {"halt of 0: false recall"},
		} {
			want = append(append(want, group...), group...) // by each instance
		}
		slices.Sort(published)
		slices.Sort(want)
		assert.EqualSlices(t, published, want, "published")
	})
}

func TestHalt_CommandNotYetPublishedIsNotExecuted(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.mqtt.fail(nil, errUnavailable)
		time.AfterFunc(time.Second, func() { w.Halt(telematics.Halt{Why: "recall"}) })
		start := time.Now()
		c, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.CommandsHalted)
		if took := time.Since(start); c.State != telematics.Expired || took > 2*time.Second || !strings.Contains(err.Message, "recall") {
			t.Errorf("after %v: %+v; want expired within 2 s, with the halt's reason", took, c)
		}
		w.wantEntries(telematics.CommandsHalted)
		if c := w.record(c.ID); c.State != telematics.Expired || c.Reason != telematics.ByHalt {
			t.Errorf("recorded %+v, want expired by the halt", c)
		}
	})
}

func TestHalt_NothingIsPublishedWhileHaltsCannotBeRead(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.Break(errUnavailable, "Halts")
		c, err := w.send(telematics.Lock) // published while the last reading is recent enough
		w.wantCode(err, telematics.CommandTimeout)
		published := w.mqtt.published()
		if len(published) == 0 {
			t.Error("nothing was published while the last reading was recent enough")
		}
		for _, p := range published {
			if p.at.Sub(c.Requested) > broker.HaltWithin {
				t.Errorf("published %v after the last reading of the halts", p.at.Sub(c.Requested))
			}
		}
		_, err = w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		assert.Equal(t, len(w.mqtt.published())-len(published), 0, "messages of the refused command were published")
		w.Break(nil, "Halts")
		w.answers(0, 0, telematics.Succeeded)
		_, err = w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}
