package broker_test

import (
	"context"
	"sync"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// ledger is the record of commands, and a log of its changes.
type ledger struct {
	*interleaving
	memory *brokertest.Memory

	mu      sync.Mutex
	entries map[telematics.CommandID]*entry
	open    map[lane]telematics.CommandID
	seqs    map[lane]int64
	sold    map[telematics.VehicleID]telematics.AgencyID // the new agency; absent: not sold
}

type lane struct {
	vehicle telematics.VehicleID
	lane    telematics.Lane
}

// entry is the history of one command.
type entry struct {
	telematics.Command // its present state
	claimed            time.Time
	closed             time.Time // when it was first not open; zero: it is open
	settlements        int       // with an entry in the audit log
}

func newLedger(w *interleaving, m *brokertest.Memory) *ledger {
	return &ledger{
		interleaving: w, memory: m,
		entries: map[telematics.CommandID]*entry{}, open: map[lane]telematics.CommandID{}, seqs: map[lane]int64{},
		sold: map[telematics.VehicleID]telematics.AgencyID{},
	}
}

func (l *ledger) find(id telematics.CommandID) (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[id]; e != nil {
		return *e, true
	}
	return entry{}, false
}

// openOf returns the open commands of an instance.
func (l *ledger) openOf(instance string) []telematics.CommandID {
	l.mu.Lock()
	defer l.mu.Unlock()
	var open []telematics.CommandID
	for id, e := range l.entries {
		if e.Instance == instance && e.State.IsOpen() {
			open = append(open, id)
		}
	}
	return open
}

func (l *ledger) claim(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	claim, err := l.memory.Commands.Claim(ctx, &c)
	where := lane{c.Vehicle, c.Lane}
	switch {
	case err != nil:
		l.note("the record refuses to claim %v: %v", c.ID, err)
	case claim.Stale:
		l.count("claims refused as stale")
	case claim.KeyTaken:
		l.count("claims refused for their key")
	case claim.Occupant != nil:
		l.count("claims refused for their lane")
	default:
		l.count("claims")
		if c.Version != 0 {
			l.count("claims with a cached record")
			if agency, sold := l.sold[c.Vehicle]; sold && agency != c.Agency {
				l.violated(
					"a stale record is not used", "%v was claimed for agency %d, vehicle %d is of %d", c.ID, c.Agency,
					c.Vehicle, agency,
				)
			}
		}
		l.note("claimed %v (%s of vehicle %d, seq %d, until %s)", c.ID, c.Action, c.Vehicle, claim.Seq, l.clock(c.Deadline))
		if occupant, taken := l.open[where]; taken {
			l.violated("one open command in a lane", "%v and %v are open in lane %s of vehicle %d", occupant, c.ID, c.Lane, c.Vehicle)
		}
		if claim.Seq <= l.seqs[where] {
			l.violated("seq grows in a lane", "%d follows %d", claim.Seq, l.seqs[where])
		}
		l.open[where], l.seqs[where] = c.ID, claim.Seq
		c.Seq = claim.Seq
		l.entries[c.ID] = &entry{Command: c, claimed: time.Now()}
	}
	return claim, err
}

// sell transfers a vehicle to the other agency.
func (l *ledger) sell(id telematics.VehicleID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.memory.Change(id, func(twin *telematics.Twin) {
		twin.AgencyID = 3 - twin.AgencyID // the agencies are 1 and 2
		l.sold[id] = twin.AgencyID
	})
	l.count("vehicles sold")
	l.note("vehicle %d is sold to agency %d", id, l.sold[id])
}

func (l *ledger) noteAll(ctx context.Context, notes []delivery.Note) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.memory.Commands.StoreProgress(ctx, notes)
	for _, n := range notes {
		l.followed(n.Command)
	}
	return err
}

func (l *ledger) settle(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[s.Command]
	var before telematics.State
	if e != nil {
		before = e.State
	}
	c, ok, err := l.memory.Commands.Settle(ctx, s)
	l.followed(s.Command)
	if ok && e != nil && e.State != before && !s.State.IsOpen() { // else a repeated one
		e.settlements++
		if c.Late {
			l.count("late answers")
		}
	}
	return c, ok, err
}

// followed records a change of a command's state.
func (l *ledger) followed(id telematics.CommandID) {
	e := l.entries[id]
	now, err := l.memory.Commands.Command(context.Background(), id)
	if e == nil || err != nil || e.State == now.State {
		return
	}
	l.note("%v: %s → %s %s %s", id, e.State, now.State, now.Reason, now.Detail)
	l.stepped(e.State, now.State)
	if !e.State.MayBecome(now.State) {
		l.violated("the lifecycle", "%v went from %s to %s", id, e.State, now.State)
	}
	if e.State.IsOpen() && !now.State.IsOpen() {
		e.closed = time.Now()
		delete(l.open, lane{e.Vehicle, e.Lane})
	}
	e.Command = now
}
