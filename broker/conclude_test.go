package broker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

// truckEndsUnknown sends a lock to a truck that was reported unlocked, and that says things a
// second after the command, and then nothing.
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

// dated adds the time to what a unit says that dates its reports.
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

func TestConclude_ALateReportSettlesAsALateAnswerDoes(t *testing.T) {
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
				if n != 1 || event.State != telematics.Succeeded || !event.Late || got.State != telematics.Succeeded || !got.Late || got.Contradicted || got.Detail != "" {
					t.Errorf("%s, after %v: %d events, %+v, recorded %+v", name, after, n, event, got)
				}
				if n := w.count("motorpool_commands_confirmed_late_total"); n != 1 {
					t.Errorf("counted %d times", n)
				}
				w.truckSays(2, w.dated(installed, "locked no")) // by hand, later
				time.Sleep(5 * time.Minute)
				if n, event := w.eventsSince(before, c.ID); n != 1 {
					t.Errorf("%s: %d events, then %+v", name, n, event)
				}
			})
		}
	}
}

func TestConclude_AReportThatContradictsIsPublishedOnce(t *testing.T) {
	for _, c := range []struct {
		says  []string
		early time.Duration // after the command; nothing is contradicted yet
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
				t.Errorf("%q: contradicted too early: %+v", c.says, event)
			}
			w.stops[0]() // the instance that has sent it
			w.stops = w.stops[1:]
			time.Sleep(10 * time.Second)
			for range 3 {
				w.truckSays(1, w.dated(withClock, "locked no"))
				time.Sleep(10 * time.Second)
			}
			n, event := w.eventsSince(before, command.ID)
			got := w.record(command.ID)
			if n != 1 || event.State != telematics.Unknown || !event.Contradicted || got.State != telematics.Unknown || !got.Contradicted || got.Late {
				t.Errorf("%q: %d events, %+v, recorded %+v", c.says, n, event, got)
			}
			w.truckSays(1, w.dated(withClock, "locked yes")) // by hand
			time.Sleep(10 * time.Second)
			if got := w.record(command.ID); got.State != telematics.Unknown {
				t.Errorf("%q: then %+v", c.says, got)
			}
		})
	}
}

func TestConclude_WhatSaysNothingOfTheCommandConcludesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		installed telematics.Installation
		happens   func(w *world)
	}{
		"a repeated value without a time":      {withContact, func(w *world) { time.Sleep(3 * time.Minute); w.truckSays(0, "locked no") }},
		"a record of before, kept by the unit": {withClock, func(w *world) { w.truckSays(0, fmt.Sprintf("locked yes %d", time.Now().Add(-time.Minute).Unix())) }},
		"a report that comes after its time":   {withClock, func(w *world) { time.Sleep(11 * time.Minute); w.truckSays(0, w.dated(withClock, "locked yes")) }},
		"a report after the unit left": {withClock, func(w *world) {
			w.Change(truckID, func(twin *telematics.Twin) { twin.Unit = "another" })
			w.truckSays(0, w.dated(withClock, "locked yes"))
		}},
		"what a later command may have caused": {withContact, func(w *world) {
			time.Sleep(2 * time.Second)
			w.truckDoes(1, "answer taken", "locked yes")
			if c, err := w.sendToTruck(1, telematics.Lock); c.State != telematics.Succeeded {
				w.Errorf("%+v, %v", c, err)
			}
		}},
	} {
		inWorld(t, 2, func(w *world) {
			command := w.truckEndsUnknown(c.installed, "answer taken")
			before := len(w.Events.All())
			c.happens(w)
			time.Sleep(20 * time.Second)
			if n, event := w.eventsSince(before, command.ID); n > 0 || w.record(command.ID).State != telematics.Unknown {
				t.Errorf("%s: %d events, %+v", name, n, event)
			}
		})
	}
}
