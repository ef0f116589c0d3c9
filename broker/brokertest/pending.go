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
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// PendingTables is one pending table, as two instances of Motorpool use it.
type PendingTables struct {
	Here, There broker.PendingTable
	Flush       func() // empties it, as a restart of its server would
}

// PendingTableContract runs what every pending table promises. open returns an empty
// table.
func PendingTableContract(t *testing.T, open func(*testing.T) PendingTables) {
	for name, run := range map[string]func(*testing.T, PendingTables){
		"ARegisteredCommandIsFoundByEveryInstance": registeredIsFound,
		"ACommandIsFoundUnderItsOwnUnitOnly":       foundUnderItsUnit,
		"AReleasedCommandIsGone":                   releasedIsGone,
		"RegisteringAgainReplaces":                 registeringAgainReplaces,
		"AnEntryOutlivesItsDeadlineForAMinute":     entryOutlivesDeadline,
		"AnEmptiedTableWorksOn":                    emptiedTableWorksOn,
		"AWakeUpReachesItsInstanceAlone":           wakeReachesItsInstance,
		"WakingAnInstanceThatIsGoneIsNoError":      wakingNoInstance,
		"ManyInstancesUseTheTable":                 manyUseTheTable,
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

// wantPending fails unless the table holds exactly p.
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

// wantContained fails unless the table says so of a command, alone and among many others.
func wantContained(t *testing.T, table broker.PendingTable, unit telematics.Unit, id telematics.CommandID, want bool) {
	t.Helper()
	asked := make([]delivery.Pending, 300)
	for i := range asked {
		asked[i] = delivery.Pending{Unit: unit, Command: uuid.New()}
	}
	asked[len(asked)-1].Command = id
	got, err := table.Contains(t.Context(), asked)
	if err != nil || len(got) != len(asked) || got[len(got)-1] != want || slices.Contains(got[:len(got)-1], true) {
		t.Errorf("Contains = %v, %v; want %t at the end alone", got, err, want)
	}
}

// wantNoPending fails if the table holds an entry.
func wantNoPending(t *testing.T, table broker.PendingTable, unit telematics.Unit, id telematics.CommandID) {
	t.Helper()
	if got, ok, err := table.Lookup(t.Context(), unit, id); err != nil || ok || got != (delivery.Pending{}) {
		t.Errorf("Lookup = %+v, %v, %v; want nothing", got, ok, err)
	}
	wantContained(t, table, unit, id, false)
}

func register(t *testing.T, table broker.PendingTable, p delivery.Pending) {
	t.Helper()
	if err := table.Register(p)(t.Context()); err != nil {
		t.Fatalf("Register: %v", err)
	}
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
	for range 2 { // what is gone may be released again
		if err := tables.There.Release(t.Context(), p); err != nil {
			t.Fatalf("Release: %v", err)
		}
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
	Eventually(t, timeout, "the entry goes", func() bool {
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
	if err := tables.Here.Release(t.Context(), before); err != nil {
		t.Errorf("Release: %v", err)
	}
	register(t, tables.Here, after)
	wantPending(t, tables.There, after)
}

func wakeReachesItsInstance(t *testing.T, tables PendingTables) {
	a := listen(t, tables.Here, "a")
	b := listen(t, tables.There, "b")
	a.awaken(t, tables.There)
	b.awaken(t, tables.Here)
	id := uuid.New()
	if err := tables.There.Wake(t.Context(), "a", id); err != nil {
		t.Fatalf("Wake: %v", err)
	}
	Eventually(t, timeout, "the hint arrives", func() bool { return a.heard(id) })
	b.awaken(t, tables.Here) // whatever was sent before has arrived now
	if b.heard(id) {
		t.Error("the hint for a reached b too")
	}
}

func wakingNoInstance(t *testing.T, tables PendingTables) {
	if err := tables.Here.Wake(t.Context(), "absent", uuid.New()); err != nil {
		t.Errorf("Wake: %v", err)
	}
}

func manyUseTheTable(t *testing.T, tables PendingTables) {
	var wg sync.WaitGroup
	for i := range 50 {
		table := tables.Here
		if i%2 == 1 {
			table = tables.There
		}
		wg.Go(func() {
			p := newPending()
			p.Unit = telematics.Unit(fmt.Sprintf("unit-%d", i%5))
			if err := table.Register(p)(t.Context()); err != nil {
				t.Errorf("Register: %v", err)
			}
			wantFound(t, tables.Here, p)
			if err := table.Release(t.Context(), p); err != nil {
				t.Errorf("Release: %v", err)
			}
			if got, ok, err := tables.There.Lookup(t.Context(), p.Unit, p.Command); err != nil || ok {
				t.Errorf("Lookup of a released entry = %+v, %v, %v", got, ok, err)
			}
		})
	}
	wg.Wait()
}

// ear collects the hints that reach an instance.
type ear struct {
	instance string
	mu       sync.Mutex
	ids      map[telematics.CommandID]bool
}

// listen starts an instance's Listen, which ends, without error, with the test.
func listen(t *testing.T, table broker.PendingTable, instance string) *ear {
	e := &ear{instance: instance, ids: map[telematics.CommandID]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- table.Listen(ctx, instance, func(id telematics.CommandID) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.ids[id] = true
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
	return e
}

func (e *ear) heard(id telematics.CommandID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[id]
}

// awaken wakes the instance until it hears: hints get lost before it listens.
func (e *ear) awaken(t *testing.T, table broker.PendingTable) {
	t.Helper()
	Eventually(t, timeout, e.instance+" listens", func() bool {
		id := uuid.New()
		if err := table.Wake(t.Context(), e.instance, id); err != nil {
			t.Fatalf("Wake: %v", err)
		}
		for range 20 {
			if e.heard(id) {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		return false
	})
}
