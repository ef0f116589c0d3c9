package brokertest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

// EventLog is an event log, for publishers and followers.
type EventLog interface {
	broker.Events
	// After returns up to limit events after the one with the given id, and none after the one with
	// the id until (empty: no bound). It reports false where the id is unknown, or the events after
	// it are not complete any more.
	After(ctx context.Context, id, until string, limit int) ([]telematics.Event, bool, error)
	// Follow calls begin with the latest events, at least one and up to recent, and then next with
	// all later events, without a gap, until the context ends. It also calls next with no events,
	// at least once a second, while the whole log replies. Where the log has lost the place, it
	// calls begin again.
	Follow(ctx context.Context, recent int, begin, next func([]telematics.Event)) error
}

// EventLogs is one log, as two instances of Motorpool use it.
type EventLogs struct {
	Here, There EventLog
	Empty       func() // removes all events
	// The log has several streams: only the events of one vehicle are in order. While one stream
	// after the other is emptied, followers may receive an event twice.
	Spread bool
}

// complete reports whether a follower received the events of the wanted vehicles, once each and in
// order, as far as the log promises it.
func (l EventLogs) complete(got, want []telematics.VehicleID) bool {
	if l.Spread {
		got = slices.Compact(slices.Sorted(slices.Values(got)))
	}
	return slices.Equal(got, want)
}

// EventsContract runs the contract of event logs.
func EventsContract(t *testing.T, open func(*testing.T) EventLogs) {
	for name, run := range map[string]func(*testing.T, EventLogs){
		"EveryFieldOfAnEventIsStored":             everyFieldOfAnEventIsStored,
		"EveryInstanceReceivesEventsInOrder":      followedEverywhere,
		"NewFollowerBeginsWithTheLatestEvents":    beginsWithLatest,
		"EventsAreReadInPagesAndUntilAnEvent":     readUntil,
		"EventsOfOneVehicleStayInOrder":           inOrderOfVehicle,
		"ReadAfterUnknownIDIsIncomplete":          unknownID,
		"FollowerOfEmptyLogBeginsWithAnEvent":     emptyLogBegins,
		"FollowerBeginsAgainAfterTheLogIsEmptied": emptiedLog,
		"FollowerIsCalledWhileTheLogReplies":      logReplies,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// follower records what Follow passes to it.
type follower struct {
	mu     sync.Mutex
	begins int
	events []telematics.Event
	nones  int // calls without an event
}

func (f *follower) begin(events []telematics.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begins++
	f.events = append(f.events, events...)
}

func (f *follower) next(events []telematics.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, events...)
	if len(events) == 0 {
		f.nones++
	}
}

func (f *follower) received() ([]telematics.Event, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events), f.begins
}

// vehiclesOf returns the vehicles of events, without resets.
func vehiclesOf(events []telematics.Event) []telematics.VehicleID {
	var ids []telematics.VehicleID
	for _, e := range events {
		if e.Kind != telematics.ResetEvent {
			ids = append(ids, e.Vehicle)
		}
	}
	return ids
}

func follow(t *testing.T, log EventLog, recent int) *follower {
	t.Helper()
	f := &follower{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(t, log.Follow(ctx, recent, f.begin, f.next), "Follow")
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	Eventually(t, timeout, "the follower begins", func() bool { _, begins := f.received(); return begins > 0 })
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
	if missing, err := log.Publish(t.Context(), events); err != nil || len(missing) > 0 {
		t.Fatalf("Publish: %d missing, %v", len(missing), err)
	}
}

func numbers(from, to int) []telematics.VehicleID {
	var ids []telematics.VehicleID
	for n := from; n <= to; n++ {
		ids = append(ids, telematics.VehicleID(n))
	}
	return ids
}

func everyFieldOfAnEventIsStored(t *testing.T, l EventLogs) {
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
	accepted := telematics.Command{
		ID: uuid.New(), Vehicle: 42, Agency: 7, Action: telematics.Lock, State: telematics.Accepted, Requested: at,
		Deadline: at.Add(time.Second),
	}
	snapshot := telematics.Merge(nil, report)
	snapshot[telematics.Gear] = telematics.Reading{At: at} // null
	want := []telematics.Event{
		command.Event(at),
		accepted.Event(at),
		{
			Kind: telematics.StatusEvent, Vehicle: 42, Agency: 7, At: at,
			Change: &telematics.Change{Vehicle: 42, Agency: 7, Fields: snapshot, LastSeen: at},
		},
		{
			Kind: telematics.PresenceEvent, Vehicle: 42, Agency: 7, At: at,
			Change: &telematics.Change{Vehicle: 42, Agency: 7, Presence: telematics.Standby, LastSeen: at},
		},
		{Kind: telematics.AlarmEvent, Vehicle: 42, Agency: 7, At: at, Alarm: &telematics.Alarm{Kind: "vehicle.flatbed", Text: "is moved"}},
		{Kind: telematics.AlertEvent, Vehicle: 42, Agency: 7, At: at, Alert: &telematics.AlertChange{
			ID: command.ID.String(), Change: "acknowledged", Rule: "left_open", Severity: "warning", Plate: "M-1", Person: "eva",
			Booking: 9,
			Command: accepted.ID.String(), Facts: map[string]any{"volts": 11.7}, Since: at, Opened: at.Add(time.Second),
			Cleared: at.Add(time.Minute), SeenBy: "tom", SeenAt: at.Add(2 * time.Second), SeenNote: "towed",
		}},
		telematics.HaltChange{Halt: telematics.Halt{Agency: 7, Why: "recall", By: "Zoë", Since: at}, InForce: true}.Event(at),
		telematics.HaltChange{Halt: telematics.Halt{Why: "theft", By: "eva", Since: at}}.Event(at),
		{Kind: telematics.ResetEvent, At: at},
	}
	f := follow(t, l.There, 10)
	if missing, err := l.Here.Publish(t.Context(), want); err != nil || len(missing) > 0 {
		t.Fatalf("%d missing, %v", len(missing), err)
	}
	Eventually(t, timeout, "all events arrive", func() bool {
		got, _ := f.received()
		return len(vehiclesOf(got)) == len(want)-1 &&
			slices.ContainsFunc(got, func(e telematics.Event) bool { return e.Kind == telematics.ResetEvent && e.At.Equal(at) })
	})
	got, _ := f.received()
	// Resets last, and before them the events without a vehicle: a log may have several streams.
	rank := func(e telematics.Event) int {
		return slices.Index([]bool{e.Vehicle != 0, e.Kind != telematics.ResetEvent, true}, true)
	}
	slices.SortStableFunc(got, func(a, b telematics.Event) int { return cmp.Compare(rank(a), rank(b)) })
	got = append(got[:len(want)-1], got[len(got)-1])
	for i := range want {
		if got[i].ID == "" {
			t.Errorf("event %d has no id", i)
		}
		got[i].ID = ""
		if c := got[i].Change; c != nil && c.Fields.Empty() {
			c.Fields = nil
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf(
				"event %d\n got %+v %+v %+v\nwant %+v %+v %+v", i, got[i], got[i].Change, got[i].Command, want[i],
				want[i].Change, want[i].Command,
			)
		}
	}
}

func followedEverywhere(t *testing.T, l EventLogs) {
	a, b := follow(t, l.Here, 10), follow(t, l.There, 10)
	for n := range 50 {
		publishPresences(t, [...]EventLog{l.Here, l.There}[n%2], numbers(n*10, n*10+9)...)
	}
	want := numbers(0, 499)
	for _, f := range []*follower{a, b} {
		Eventually(t, timeout, "all events arrive", func() bool { got, _ := f.received(); return len(vehiclesOf(got)) >= len(want) })
		got, begins := f.received()
		if !l.complete(vehiclesOf(got), want) || begins != 1 {
			t.Errorf("received %v, with %d calls of begin", vehiclesOf(got), begins)
		}
		ids := map[string]bool{}
		for _, e := range got {
			if e.Kind != telematics.ResetEvent { // each stream of a log begins with one
				ids[e.ID] = true
			}
		}
		if len(ids) != len(want) {
			t.Errorf("%d ids for %d events", len(ids), len(want))
		}
	}
}

func beginsWithLatest(t *testing.T, l EventLogs) {
	publishPresences(t, l.Here, numbers(1, 20)...)
	f := follow(t, l.There, 5)
	if got, _ := f.received(); !slices.Equal(vehiclesOf(got), numbers(16, 20)) && (!l.Spread || len(got) != 5) {
		t.Errorf("begin was called with %v", vehiclesOf(got))
	}
}

// readAll reads the events after one in pages of ten.
func readAll(t *testing.T, log EventLog, after string) (read []telematics.Event) {
	t.Helper()
	for {
		page, complete, err := log.After(t.Context(), after, "", 10)
		if err != nil || !complete || len(page) > 10 {
			t.Fatalf("After(%s) = %d events, %v, %v", after, len(page), complete, err)
		}
		if len(page) == 0 {
			return read
		}
		read, after = append(read, page...), page[len(page)-1].ID
	}
}

// readUntil reads from the last event of one follower to each later event of another one, and then
// the rest: no event is missing.
func readUntil(t *testing.T, l EventLogs) {
	here, there := follow(t, l.Here, 1), follow(t, l.There, 1)
	publishPresences(t, l.Here, numbers(1, 10)...)
	Eventually(t, timeout, "ten events arrive", func() bool { got, _ := here.received(); return len(vehiclesOf(got)) == 10 })
	begun, _ := here.received()
	from := begun[len(begun)-1].ID
	publishPresences(t, l.Here, numbers(11, 30)...)
	Eventually(t, timeout, "all events arrive", func() bool { got, _ := there.received(); return len(vehiclesOf(got)) == 30 })
	all, _ := there.received()
	for n := 10; n <= len(all); n++ {
		until := all[n-1].ID
		read, complete, err := l.Here.After(t.Context(), from, until, 100)
		if err != nil || !complete {
			t.Fatalf("After(%s, %s): %v, %v", from, until, complete, err)
		}
		rest := readAll(t, l.There, until)
		if last := len(read) - 1; n == len(all) && (last < 0 || read[last].ID != until) {
			t.Errorf("After(%s, %s) = %d events, want the last one to be %s", from, until, len(read), until)
		}
		got := append(vehiclesOf(begun), vehiclesOf(append(read, rest...))...)
		if slices.Sort(got); !slices.Equal(slices.Compact(got), numbers(1, 30)) {
			t.Errorf("until event %d: read %v", n, got)
		}
	}
	if read, complete, err := l.Here.After(t.Context(), all[len(all)-1].ID, from, 100); err != nil || !complete || len(read) > 0 {
		t.Errorf("after the last event, until an earlier one: %v, %v, %v", vehiclesOf(read), complete, err)
	}
}

func inOrderOfVehicle(t *testing.T, l EventLogs) {
	f := follow(t, l.There, 1)
	const vehicles, each = 10, 30
	for n := range each {
		var events []telematics.Event
		for id := range telematics.VehicleID(vehicles) {
			e := presenceOf(id + 1)
			e.At = e.At.Add(time.Duration(n) * time.Millisecond)
			events = append(events, e)
		}
		if missing, err := l.Here.Publish(t.Context(), events); err != nil || len(missing) > 0 {
			t.Fatalf("Publish: %d missing, %v", len(missing), err)
		}
	}
	Eventually(t, timeout, "all events arrive", func() bool { got, _ := f.received(); return len(vehiclesOf(got)) == vehicles*each })
	got, _ := f.received()
	last := map[telematics.VehicleID]time.Time{}
	for _, e := range got {
		if e.Kind == telematics.ResetEvent {
			continue
		}
		if !e.At.After(last[e.Vehicle]) {
			t.Errorf("vehicle %d: %s after %s", e.Vehicle, e.At, last[e.Vehicle])
		}
		last[e.Vehicle] = e.At
	}
}

func unknownID(t *testing.T, l EventLogs) {
	publishPresences(t, l.Here, 1, 2)
	for _, id := range []string{
		"", "x", "0", "0-0", "-", "+", "$", "(1-1", "-1-0", "99999999999999-0", "1-x", "18446744073709551616-0", "1-2-3", "1767348000000-7",
	} {
		if events, complete, err := l.Here.After(t.Context(), id, "", 10); err != nil || complete || len(events) > 0 {
			t.Errorf("After(%q) = %d events, %v, %v", id, len(events), complete, err)
		}
	}
}

func emptyLogBegins(t *testing.T, l EventLogs) {
	f := follow(t, l.Here, 5)
	begun, _ := f.received()
	publishPresences(t, l.There, 1)
	events, complete, err := l.There.After(t.Context(), begun[len(begun)-1].ID, "", 10)
	if err != nil || !complete || !slices.Equal(vehiclesOf(events), numbers(1, 1)) {
		t.Errorf("after the first event: %v, %v, %v", vehiclesOf(events), complete, err)
	}
}

func emptiedLog(t *testing.T, l EventLogs) {
	f := follow(t, l.Here, 5)
	publishPresences(t, l.Here, 1, 2)
	Eventually(t, timeout, "both events arrive", func() bool { got, _ := f.received(); return len(vehiclesOf(got)) == 2 })
	removed, _ := f.received()
	l.Empty()
	publishPresences(t, l.There, 3)
	Eventually(
		t, timeout, "the follower begins again",
		func() bool { got, begins := f.received(); return begins >= 2 && slices.Contains(vehiclesOf(got), 3) },
	)
	if _, complete, err := l.Here.After(t.Context(), removed[len(removed)-1].ID, "", 10); err != nil || complete {
		t.Errorf("after an event that was removed: complete %v, %v", complete, err)
	}
	publishPresences(t, l.Here, 4)
	Eventually(t, timeout, "the next event arrives", func() bool { got, _ := f.received(); return slices.Contains(vehiclesOf(got), 4) })
	got, begins := f.received()
	if begins != 2 && !l.Spread || !l.complete(vehiclesOf(got), numbers(1, 4)) {
		t.Errorf("%d calls of begin, received %s", begins, fmt.Sprint(vehiclesOf(got)))
	}
}

func logReplies(t *testing.T, l EventLogs) {
	f := follow(t, l.Here, 5)
	nones := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.nones
	}
	Eventually(t, timeout, "calls without events while none is published", func() bool { return nones() >= 3 })
	before := nones()
	id := telematics.VehicleID(1)
	Eventually(t, timeout, "calls without events while some are published", func() bool {
		publishPresences(t, l.There, id)
		id++
		return nones() >= before+3
	})
}
