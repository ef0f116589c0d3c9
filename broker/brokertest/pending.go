package brokertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// PendingTables is one pending table, as two instances of Motorpool use it.
type PendingTables struct {
	Here, There broker.PendingTable
	Flush       func() // removes all entries, as a restart of Redis does
}

// PendingTableContract runs the contract of pending tables. open returns an empty table.
func PendingTableContract(t *testing.T, open func(*testing.T) PendingTables) {
	for name, run := range map[string]func(*testing.T, PendingTables){
		"RegisteredCommandIsFoundByEveryInstance": registeredIsFound,
		"CommandIsNotFoundUnderAnotherUnit":       foundUnderItsUnit,
		"ReleasedCommandIsNotFound":               releasedIsGone,
		"SecondRegistrationReplacesTheEntry":      registeringAgainReplaces,
		"EntryExpiresAMinuteAfterItsDeadline":     entryOutlivesDeadline,
		"EmptiedTableAcceptsEntries":              emptiedTableWorksOn,
		"WakeReachesOnlyItsInstance":              wakeReachesItsInstance,
		"WakeOfAbsentInstanceIsNoError":           wakingNoInstance,
		"ConcurrentCallsFindTheirEntries":         concurrentCalls,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func newPending() delivery.Pending {
	return delivery.Pending{
		Command: uuid.New(), Vehicle: 7, Unit: "861000000000007", Instance: "a",
		Deadline: time.Now().Add(10 * time.Second).UTC().Truncate(time.Millisecond),
	}
}

// wantPending fails unless the table has exactly p.
func wantPending(t *testing.T, table broker.PendingTable, p delivery.Pending) {
	t.Helper()
	wantFound(t, table, p)
	wantContained(t, table, p.Unit, p.Command, true)
}

// wantFound fails unless a look-up finds the entry.
func wantFound(t *testing.T, table broker.PendingTable, p delivery.Pending) {
	t.Helper()
	got, ok, err := table.Lookup(t.Context(), p.Unit, p.Command)
	if err != nil || !ok || got != p {
		t.Errorf("Lookup = %+v, %v, %v; want %+v", got, ok, err, p)
	}
}

// wantContained fails unless Contains reports want for a command, and false for 299 other commands
// of the unit.
func wantContained(t *testing.T, table broker.PendingTable, unit telematics.Unit, id telematics.CommandID, want bool) {
	t.Helper()
	queried := make([]delivery.Pending, 300)
	for i := range queried {
		queried[i] = delivery.Pending{Unit: unit, Command: uuid.New()}
	}
	queried[len(queried)-1].Command = id
	got, err := table.Contains(t.Context(), queried)
	if err != nil || len(got) != len(queried) || got[len(got)-1] != want || slices.Contains(got[:len(got)-1], true) {
		t.Errorf("Contains = %v, %v; want %t for the last one, and false for the others", got, err, want)
	}
}

// wantNoPending fails if the table has an entry of the command.
func wantNoPending(t *testing.T, table broker.PendingTable, unit telematics.Unit, id telematics.CommandID) {
	t.Helper()
	if got, ok, err := table.Lookup(t.Context(), unit, id); err != nil || ok || got != (delivery.Pending{}) {
		t.Errorf("Lookup = %+v, %v, %v; want nothing", got, ok, err)
	}
	wantContained(t, table, unit, id, false)
}

func register(t *testing.T, table broker.PendingTable, p delivery.Pending) {
	t.Helper()
	require.NoError(t, table.Register(p)(t.Context()), "Register")
}

func registeredIsFound(t *testing.T, tables PendingTables) {
	p := newPending()
	register(t, tables.Here, p)
	wantPending(t, tables.Here, p)
	wantPending(t, tables.There, p)
}

func foundUnderItsUnit(t *testing.T, tables PendingTables) {
	p := newPending()
	register(t, tables.Here, p)
	wantNoPending(t, tables.Here, "861000000000008", p.Command)
	wantNoPending(t, tables.Here, p.Unit, uuid.New())
}

func releasedIsGone(t *testing.T, tables PendingTables) {
	p := newPending()
	register(t, tables.Here, p)
	for range 2 { // Release is idempotent
		require.NoError(t, tables.There.Release(t.Context(), p), "Release")
		wantNoPending(t, tables.Here, p.Unit, p.Command)
	}
}

func registeringAgainReplaces(t *testing.T, tables PendingTables) {
	p := newPending()
	register(t, tables.Here, p)
	p.Instance = "b"
	register(t, tables.There, p)
	wantPending(t, tables.Here, p)
}

func entryOutlivesDeadline(t *testing.T, tables PendingTables) {
	late, gone := newPending(), newPending()
	late.Deadline = late.Deadline.Add(-40 * time.Second)
	gone.Deadline = gone.Deadline.Add(-69 * time.Second)
	register(t, tables.Here, late)
	register(t, tables.Here, gone)
	Eventually(t, timeout, "the entry expires", func() bool {
		_, ok, err := tables.Here.Lookup(t.Context(), gone.Unit, gone.Command)
		return err == nil && !ok
	})
	wantPending(t, tables.Here, late)
}

func emptiedTableWorksOn(t *testing.T, tables PendingTables) {
	before, after := newPending(), newPending()
	register(t, tables.Here, before)
	tables.Flush()
	wantNoPending(t, tables.Here, before.Unit, before.Command)
	assert.NoError(t, tables.Here.Release(t.Context(), before), "Release")
	register(t, tables.Here, after)
	wantPending(t, tables.There, after)
}

func wakeReachesItsInstance(t *testing.T, tables PendingTables) {
	a := listen(t, tables.Here, "a")
	b := listen(t, tables.There, "b")
	a.await(t, tables.There)
	b.await(t, tables.Here)
	id := uuid.New()
	require.NoError(t, tables.There.Wake(t.Context(), "a", id), "Wake")
	Eventually(t, timeout, "the hint arrives", func() bool { return a.received(id) })
	b.await(t, tables.Here) // earlier hints have arrived now
	if b.received(id) {
		t.Error("the hint for a reached b too")
	}
}

func wakingNoInstance(t *testing.T, tables PendingTables) {
	assert.NoError(t, tables.Here.Wake(t.Context(), "absent", uuid.New()), "Wake")
}

func concurrentCalls(t *testing.T, tables PendingTables) {
	race(50, tables.Here, tables.There, func(i int, table broker.PendingTable) {
		p := newPending()
		p.Unit = telematics.Unit(fmt.Sprintf("unit-%d", i%5))
		assert.NoError(t, table.Register(p)(t.Context()), "Register")
		wantFound(t, tables.Here, p)
		assert.NoError(t, table.Release(t.Context(), p), "Release")
		if got, ok, err := tables.There.Lookup(t.Context(), p.Unit, p.Command); err != nil || ok {
			t.Errorf("Lookup of a released entry = %+v, %v, %v", got, ok, err)
		}
	})
}

// listener collects the hints that reach an instance.
type listener struct {
	instance string
	mu       sync.Mutex
	ids      map[telematics.CommandID]bool
}

// listen calls Listen for an instance, concurrently, until the test ends.
func listen(t *testing.T, table broker.PendingTable, instance string) *listener {
	l := &listener{instance: instance, ids: map[telematics.CommandID]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- table.Listen(ctx, instance, func(id telematics.CommandID) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ids[id] = true
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Listen = %v, want nil when its context ends", err)
			}
		case <-time.After(timeout):
			t.Error("Listen does not end with its context")
		}
	})
	return l
}

func (l *listener) received(id telematics.CommandID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ids[id]
}

// await sends hints until one arrives: those before the instance listens get lost.
func (l *listener) await(t *testing.T, table broker.PendingTable) {
	t.Helper()
	Eventually(t, timeout, l.instance+" listens", func() bool {
		id := uuid.New()
		require.NoError(t, table.Wake(t.Context(), l.instance, id), "Wake")
		for range 20 {
			if l.received(id) {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		return false
	})
}
