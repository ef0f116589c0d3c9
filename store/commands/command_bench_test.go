package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// commandRecord is a record on a server that waits for the disk at each commit, and a fleet with
// a free lane for each call.
type commandRecord struct {
	*instance
	b     *testing.B
	open  []telematics.Command
	fleet int
}

func newCommandRecord(b *testing.B) *commandRecord {
	b.Helper()
	r := &commandRecord{instance: open(b, storetest.StartPostgres(b, true).Database(storetest.Template)), b: b, fleet: storetest.RoundSize}
	storetest.AddFleet(b, r.DB, r.fleet)
	return r
}

// fresh settles the open commands, and returns new ones, each for a separate lane.
func (r *commandRecord) fresh(n int) []telematics.Command {
	r.b.Helper()
	r.settleAll()
	commands := make([]telematics.Command, n)
	for i := range commands {
		commands[i] = brokertest.NewCommand(telematics.VehicleID(i+1), telematics.Lock)
	}
	r.open = commands
	return commands
}

// claimed returns commands that were claimed.
func (r *commandRecord) claimed(n int) []telematics.Command {
	r.b.Helper()
	commands := r.fresh(n)
	for batch := range slices.Chunk(commands, r.MaxBatch()) {
		if _, err := r.claim(r.b.Context(), pointers(batch)); err != nil {
			r.b.Fatal(err)
		}
	}
	return commands
}

func (r *commandRecord) settleAll() {
	r.b.Helper()
	for batch := range slices.Chunk(r.open, r.MaxBatch()) {
		settlements := make([]delivery.Settlement, len(batch))
		for i, c := range batch {
			settlements[i] = success(c)
		}
		if _, err := r.settle(context.Background(), pointers(settlements)); err != nil {
			r.b.Fatal(err)
		}
	}
	r.open = nil
}

func pointers[T any](items []T) []*T {
	list := make([]*T, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}

// success is the settlement by a unit's answer with a small report.
func success(c telematics.Command) delivery.Settlement {
	at := c.Requested.Add(time.Second)
	return delivery.Settlement{
		Command: c.ID, Unit: c.Unit, State: telematics.Succeeded, At: at, Progress: delivery.Progress{SentAt: at, Attempts: 1},
		Reported: &telematics.Report{At: at, Values: map[telematics.Field]any{telematics.IsLocked: true}},
	}
}

var errWithoutEffect = errors.New("without effect")

func (r *commandRecord) take(c telematics.Command) error {
	claim, err := r.Claim(r.b.Context(), c)
	if err == nil && !claim.Taken() {
		err = fmt.Errorf("claim: %w", errWithoutEffect)
	}
	return err
}

func (r *commandRecord) end(c telematics.Command) error {
	_, ok, err := r.Settle(r.b.Context(), success(c))
	if err == nil && !ok {
		err = fmt.Errorf("settle: %w", errWithoutEffect)
	}
	return err
}

// run measures calls of the record with different numbers of callers, and how many calls share a
// commit.
func (r *commandRecord) run(
	name string, fresh func(int) []telematics.Command, call func(telematics.Command) error, calls int,
	batches ...*atomic.Int64,
) {
	r.b.Run(name, func(b *testing.B) {
		storetest.Concurrently(b, func(b *testing.B, callers int) {
			for _, counted := range batches {
				counted.Store(0)
			}
			storetest.Call(b, callers, fresh, call)
			var commits int64
			for _, counted := range batches {
				commits += counted.Load()
			}
			b.ReportMetric(float64(b.N*calls)/float64(commits), "commands/commit")
		})
	})
}

// BenchmarkCommandRecord measures the writes of a command, on a disk that is waited for: each
// step alone, and both one after the other, as each command makes them, while steps of other
// commands share the disk.
func BenchmarkCommandRecord(b *testing.B) {
	r := newCommandRecord(b)
	claims, settlements := countBatches(r.DB, &r.claims, r.claim), countBatches(r.DB, &r.settlements, r.settleUnlocked)
	r.run("claim", r.fresh, r.take, 1, claims)
	r.run("settle", r.claimed, r.end, 1, settlements)
	r.run("life", r.fresh, func(c telematics.Command) error {
		return errors.Join(r.take(c), r.end(c))
	}, 2, claims, settlements)
}
