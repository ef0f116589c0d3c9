package broker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

// truckEndsUnknown sends a lock to a truck that was reported unlocked. A second apart, the truck
// sends the payloads, and then nothing, so the command ends as unknown.
func (w *world) truckEndsUnknown(installed telematics.Installation, says ...string) telematics.Command {
	w.addTruck(installed)
	w.truckSays(0, w.dated(installed, "locked no"))
	synctest.Wait()
	time.Sleep(time.Minute)
	w.truckDoes(0, says...)
	c, err := w.sendToTruck(0, telematics.Lock)
	w.wantCode(err, telematics.CommandTimeout)
	w.mqtt.car = nil
	time.Sleep(time.Second) // its events are published
	return c
}

// dated appends the time to a payload where the unit dates its reports.
func (w *world) dated(installed telematics.Installation, said string) string {
	if installed["contact"] == withClock["contact"] {
		return fmt.Sprintf("%s %d", said, time.Now().Unix())
	}
	return said
}

// eventsSince counts the events of a command, and returns the latest.
func (w *world) eventsSince(n int, id telematics.CommandID) (count int, last telematics.Command) {
	time.Sleep(time.Second) // they are published in batches
	for _, e := range w.Events.All()[n:] {
		if e.Kind == telematics.CommandEvent && e.Command.ID == id {
			count, last = count+1, *e.Command
		}
	}
	return count, last
}

func TestConclude_LateReportSettlesLikeALateAnswer(t *testing.T) {
	for name, installed := range map[string]telematics.Installation{"dated": withClock, "undated": withContact} {
		for _, after := range []time.Duration{2 * time.Second, 9 * time.Minute} {
			inWorld(t, 3, func(w *world) {
				c := w.truckEndsUnknown(installed, "answer taken")
				before := len(w.Events.All())
				time.Sleep(after)
				w.truckSays(1, w.dated(installed, "locked yes"))
				time.Sleep(5 * time.Second)
				n, event := w.eventsSince(before, c.ID)
				got := w.record(c.ID)
				if n != 1 || event.State != telematics.Succeeded || !event.Late || got.State != telematics.Succeeded || !got.Late ||
					got.BestEffort.Contradicted ||
					got.Detail != "" {
					t.Errorf(
						"report %s, after %v: %d events, last %+v, recorded %+v; want one event and a late success",
						name, after, n, event, got,
					)
				}
				if n := w.count("motorpool_commands_confirmed_late_total"); n != 1 {
					t.Errorf("confirmed late: counted %d times, want once", n)
				}
				w.truckSays(2, w.dated(installed, "locked no")) // unlocked by hand, later
				time.Sleep(5 * time.Minute)
				if n, event := w.eventsSince(before, c.ID); n != 1 {
					t.Errorf("report %s: %d events after the next report, last %+v; want no further one", name, n, event)
				}
			})
		}
	}
}

func TestConclude_ContradictionIsPublishedOnce(t *testing.T) {
	for _, c := range []struct {
		says  []string
		early time.Duration // after the publication: a report this early contradicts nothing
	}{
		{[]string{"answer taken"}, 15 * time.Second},
		{nil, 100 * time.Second}, // the command may still reach the unit
	} {
		inWorld(t, 3, func(w *world) {
			command := w.truckEndsUnknown(withClock, c.says...)
			before := len(w.Events.All())
			time.Sleep(time.Until(command.SentAt.Add(c.early)))
			w.truckSays(1, w.dated(withClock, "locked no"))
			time.Sleep(5 * time.Second)
			if n, event := w.eventsSince(before, command.ID); n != 0 {
				t.Errorf("answers %q: an early report contradicted the command: %+v", c.says, event)
			}
			w.stops[0]() // the instance that sent the command
			w.stops = w.stops[1:]
			time.Sleep(10 * time.Second)
			for range 3 {
				w.truckSays(1, w.dated(withClock, "locked no"))
				time.Sleep(10 * time.Second)
			}
			n, event := w.eventsSince(before, command.ID)
			got := w.record(command.ID)
			if n != 1 || event.State != telematics.Unknown || !event.BestEffort.Contradicted || got.State != telematics.Unknown ||
				!got.BestEffort.Contradicted ||
				got.Late {
				t.Errorf("answers %q: %d events, last %+v, recorded %+v; want one, contradicted and unknown", c.says, n, event, got)
			}
			w.truckSays(1, w.dated(withClock, "locked yes")) // locked by hand
			time.Sleep(10 * time.Second)
			if got := w.record(command.ID); got.State != telematics.Unknown {
				t.Errorf("answers %q: then recorded %+v, want still unknown", c.says, got)
			}
		})
	}
}

func TestConclude_ReportThatMayHaveAnotherCauseConcludesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		installed telematics.Installation
		happens   func(w *world)
	}{
		"a repeated value without a time": {withContact, func(w *world) { time.Sleep(3 * time.Minute); w.truckSays(0, "locked no") }},
		"a stored report of before the command": {
			withClock, func(w *world) { w.truckSays(0, fmt.Sprintf("locked yes %d", time.Now().Add(-time.Minute).Unix())) },
		},
		"a report after the time for one": {
			withClock, func(w *world) { time.Sleep(11 * time.Minute); w.truckSays(0, w.dated(withClock, "locked yes")) },
		},
		"a report after the vehicle got another unit": {withClock, func(w *world) {
			w.Change(truckID, func(twin *telematics.Twin) { twin.Unit = "another" })
			w.truckSays(0, w.dated(withClock, "locked yes"))
		}},
		"a report that a later command may have caused": {withContact, func(w *world) {
			time.Sleep(2 * time.Second)
			w.truckDoes(1, "answer taken", "locked yes")
			if c, err := w.sendToTruck(1, telematics.Lock); c.State != telematics.Succeeded {
				w.Errorf("the later command: %+v, %v; want succeeded", c, err)
			}
		}},
	} {
		inWorld(t, 2, func(w *world) {
			command := w.truckEndsUnknown(c.installed, "answer taken")
			before := len(w.Events.All())
			c.happens(w)
			time.Sleep(20 * time.Second)
			if n, event := w.eventsSince(before, command.ID); n > 0 || w.record(command.ID).State != telematics.Unknown {
				t.Errorf("%s: %d events, last %+v; want none, and the command unknown", name, n, event)
			}
		})
	}
}
