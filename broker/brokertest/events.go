package brokertest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/telematics"
)

// EventLog is what a log of events does for those who tell and for those who follow.
type EventLog interface {
	broker.Events
	// After returns up to limit events after the one with an id, oldest first. It reports
	// false where the log cannot say, or cannot say any more, what came after it.
	After(ctx context.Context, id string, limit int) ([]telematics.Event, bool, error)
	// Follow calls begin with up to recent latest events, at least one, and then next with what
	// follows, without a gap, until the context ends. Where the log has lost the place, it calls
	// begin again.
	Follow(ctx context.Context, recent int, begin, next func([]telematics.Event)) error
}

// EventLogs is one log, as two instances of Motorpool use it.
type EventLogs struct {
	Here, There EventLog
	Empty       func() // makes the log forget everything
}

// EventsContract runs what every log of events promises.
func EventsContract(t *testing.T, open func(*testing.T) EventLogs) {
	for name, run := range map[string]func(*testing.T, EventLogs){
		"EveryPartOfAnEventSurvives":             everyPartSurvives,
		"EveryInstanceFollowsEventsInTheirOrder": followedEverywhere,
		"WhoComesLaterBeginsWithTheLatest":       beginsWithLatest,
		"WhatFollowsAnEventIsReadInPages":        readInPages,
		"AnUnknownPlaceIsNotGuessed":             unknownPlace,
		"AnEmptyLogHasAPlaceToBeginWith":         emptyHasPlace,
		"WhoFollowsLearnsThatTheLogWasEmptied":   emptiedLog,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// followed is what a follower has heard.
type followed struct {
	mu     sync.Mutex
	begins int
	events []telematics.Event
}

func (f *followed) begin(events []telematics.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins++
	f.events = append(f.events, events...)
}

func (f *followed) next(events []telematics.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, events...)
}

func (f *followed) heard() ([]telematics.Event, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events), f.begins
}

// vehiclesOf returns of which vehicles events tell, but for resets.
func vehiclesOf(events []telematics.Event) []telematics.VehicleID {
	var ids []telematics.VehicleID
	for _, e := range events {
		if e.Kind != telematics.ResetEvent {
			ids = append(ids, e.Vehicle)
		}
	}
	return ids
}

func follow(t *testing.T, log EventLog, recent int) *followed {
	t.Helper()
	f := &followed{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := log.Follow(ctx, recent, f.begin, f.next); err != nil {
			t.Errorf("Follow: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	Eventually(t, timeout, "the follower begins", func() bool { _, begins := f.heard(); return begins > 0 })
	return f
}

func presenceOf(vehicle telematics.VehicleID) telematics.Event {
	return telematics.Event{
		Kind: telematics.PresenceEvent, Vehicle: vehicle, Agency: 1, At: instant.Truncate(time.Millisecond),
		Change: &telematics.Change{Vehicle: vehicle, Agency: 1, Presence: telematics.Offline},
	}
}

func publishPresences(t *testing.T, log EventLog, vehicles ...telematics.VehicleID) {
	t.Helper()
	events := make([]telematics.Event, len(vehicles))
	for i, id := range vehicles {
		events[i] = presenceOf(id)
	}
	if err := log.Publish(t.Context(), events); err != nil {
		t.Fatalf("Publish: %v", err)
	}
}

func numbers(from, to int) []telematics.VehicleID {
	var ids []telematics.VehicleID
	for n := from; n <= to; n++ {
		ids = append(ids, telematics.VehicleID(n))
	}
	return ids
}

func everyPartSurvives(t *testing.T, l EventLogs) {
	report := wholeReportAt(t)
	at := instant.Truncate(time.Millisecond)
	command := telematics.Command{
		ID: uuid.New(), Vehicle: 42, Agency: 7, Action: telematics.AttentionSignal,
		Attention: &telematics.Attention{Signal: telematics.Horn, Duration: time.Second},
		Actor:     telematics.Actor{Subject: "Zoë"}, State: telematics.Failed, Reason: "interrupted", Detail: "moving",
		Reported: &telematics.Report{At: at, Values: map[telematics.Field]any{telematics.IsLocked: true}},
		Late:     true, Attempts: 3, Requested: at, SentAt: at.Add(time.Second), ReceivedAt: at.Add(2 * time.Second),
		Completed: at.Add(3 * time.Second), Deadline: at.Add(10 * time.Second),
	}
	accepted := telematics.Command{ID: uuid.New(), Vehicle: 42, Agency: 7, Action: telematics.Lock, State: telematics.Accepted, Requested: at, Deadline: at.Add(time.Second)}
	snapshot := telematics.Merge(nil, report)
	snapshot[telematics.Gear] = telematics.Reading{At: at} // no longer known
	want := []telematics.Event{
		command.Event(at),
		accepted.Event(at),
		{Kind: telematics.StatusEvent, Vehicle: 42, Agency: 7, At: at, Change: &telematics.Change{Vehicle: 42, Agency: 7, Fields: snapshot, LastSeen: at}},
		{Kind: telematics.PresenceEvent, Vehicle: 42, Agency: 7, At: at, Change: &telematics.Change{Vehicle: 42, Agency: 7, Presence: telematics.Standby, LastSeen: at}},
		{Kind: telematics.ResetEvent, At: at},
	}
	f := follow(t, l.There, 10)
	if err := l.Here.Publish(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	Eventually(t, timeout, "all have come", func() bool {
		got, _ := f.heard()
		return len(vehiclesOf(got)) == 4 && got[len(got)-1].Kind == telematics.ResetEvent
	})
	got, _ := f.heard()
	got = got[len(got)-len(want):]
	for i := range want {
		if got[i].ID == "" {
			t.Errorf("event %d has no id", i)
		}
		got[i].ID = ""
		if c := got[i].Change; c != nil && len(c.Fields) == 0 {
			c.Fields = nil
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("event %d\n got %+v %+v %+v\nwant %+v %+v %+v", i, got[i], got[i].Change, got[i].Command, want[i], want[i].Change, want[i].Command)
		}
	}
}

func followedEverywhere(t *testing.T, l EventLogs) {
	a, b := follow(t, l.Here, 10), follow(t, l.There, 10)
	for n := range 50 {
		log := l.Here
		if n%2 == 1 {
			log = l.There
		}
		publishPresences(t, log, numbers(n*10, n*10+9)...)
	}
	want := numbers(0, 499)
	for _, f := range []*followed{a, b} {
		Eventually(t, timeout, "all have come", func() bool { got, _ := f.heard(); return len(vehiclesOf(got)) >= len(want) })
		got, begins := f.heard()
		if !slices.Equal(vehiclesOf(got), want) || begins != 1 {
			t.Errorf("heard %v in %d goes", vehiclesOf(got), begins)
		}
		ids := map[string]bool{}
		for _, e := range got {
			ids[e.ID] = true
		}
		if len(ids) != len(got) {
			t.Errorf("%d ids for %d events", len(ids), len(got))
		}
	}
}

func beginsWithLatest(t *testing.T, l EventLogs) {
	publishPresences(t, l.Here, numbers(1, 20)...)
	f := follow(t, l.There, 5)
	if got, _ := f.heard(); !slices.Equal(vehiclesOf(got), numbers(16, 20)) {
		t.Errorf("began with %v", vehiclesOf(got))
	}
}

func readInPages(t *testing.T, l EventLogs) {
	f := follow(t, l.Here, 1)
	publishPresences(t, l.Here, numbers(1, 25)...)
	Eventually(t, timeout, "all have come", func() bool { got, _ := f.heard(); return len(vehiclesOf(got)) == 25 })
	all, _ := f.heard()
	var read []telematics.Event
	for at := all[0].ID; ; at = read[len(read)-1].ID {
		page, complete, err := l.There.After(t.Context(), at, 10)
		if err != nil || !complete || len(page) > 10 {
			t.Fatalf("After(%s) = %d events, %v, %v", at, len(page), complete, err)
		}
		if len(page) == 0 {
			break
		}
		read = append(read, page...)
	}
	if !slices.Equal(vehiclesOf(read), numbers(1, 25)) {
		t.Errorf("read %v", vehiclesOf(read))
	}
}

func unknownPlace(t *testing.T, l EventLogs) {
	publishPresences(t, l.Here, 1, 2)
	for _, id := range []string{
		"", "x", "0", "0-0", "-", "+", "$", "(1-1", "-1-0", "99999999999999-0", "1-x", "18446744073709551616-0", "1-2-3", "1767348000000-7",
	} {
		if events, complete, err := l.Here.After(t.Context(), id, 10); err != nil || complete || len(events) > 0 {
			t.Errorf("After(%q) = %d events, %v, %v", id, len(events), complete, err)
		}
	}
}

func emptyHasPlace(t *testing.T, l EventLogs) {
	f := follow(t, l.Here, 5)
	begun, _ := f.heard()
	publishPresences(t, l.There, 1)
	events, complete, err := l.There.After(t.Context(), begun[len(begun)-1].ID, 10)
	if err != nil || !complete || !slices.Equal(vehiclesOf(events), numbers(1, 1)) {
		t.Errorf("after the beginning: %v, %v, %v", vehiclesOf(events), complete, err)
	}
}

func emptiedLog(t *testing.T, l EventLogs) {
	f := follow(t, l.Here, 5)
	publishPresences(t, l.Here, 1, 2)
	Eventually(t, timeout, "both have come", func() bool { got, _ := f.heard(); return len(vehiclesOf(got)) == 2 })
	heard, _ := f.heard()
	l.Empty()
	publishPresences(t, l.There, 3)
	Eventually(t, timeout, "it begins again", func() bool { got, begins := f.heard(); return begins == 2 && slices.Contains(vehiclesOf(got), 3) })
	if _, complete, err := l.Here.After(t.Context(), heard[len(heard)-1].ID, 10); err != nil || complete {
		t.Errorf("what was forgotten is complete: %v, %v", complete, err)
	}
	publishPresences(t, l.Here, 4)
	Eventually(t, timeout, "it goes on", func() bool { got, _ := f.heard(); return slices.Contains(vehiclesOf(got), 4) })
	got, begins := f.heard()
	if begins != 2 || !slices.Equal(vehiclesOf(got), numbers(1, 4)) {
		t.Errorf("%d goes: %s", begins, fmt.Sprint(vehiclesOf(got)))
	}
}
