package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/broker/ingest"
	"motorpool/telematics"
)

// settledResults caches results that no report can change any more. Each unit has its own entry, so
// a unit that floods displaces none of another unit.
type settledResults struct {
	mu    sync.Mutex
	units *lru.Cache[telematics.Unit, results]
}

// results are final answers, the last one first.
type results [resultsPerUnit]result

// result is what is cached of an answer. Another state for the same command is another result,
// which is checked against Postgres.
type result struct {
	command telematics.CommandID
	state   uint8 // its place in telematics.States
}

func resultOf(a telematics.Answer) result {
	return result{a.Command, uint8(slices.Index(telematics.States, a.Settles()))}
}

func newSettledResults() *settledResults {
	return &settledResults{units: ingest.NewCache[telematics.Unit, results](resultUnits)}
}

func (d *settledResults) contains(unit telematics.Unit, a telematics.Answer) bool {
	cached, _ := d.units.Get(unit)
	same := resultOf(a)
	return slices.ContainsFunc(cached[:], func(r result) bool {
		return r.command == a.Command && (r.state == same.state || a.State.IsOpen())
	})
}

func (d *settledResults) add(unit telematics.Unit, a telematics.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cached, _ := d.units.Get(unit)
	if slices.Contains(cached[:], resultOf(a)) {
		return
	}
	copy(cached[1:], cached[:])
	cached[0] = resultOf(a)
	d.units.Add(unit, cached)
}

// ForgetSettled clears the cache of settled results, so that results which reports repeat are
// checked against Postgres once more: a failover or a restore may have lost them.
func (b *Broker) ForgetSettled() { b.settled.units.Purge() }

// checkRepeated queues the results that a report repeats: an answer that was lost on its way is
// settled by the next report [TEL-3], whose values are those of the answer, too. It does not
// block [LAW-8]; overflow is counted, and comes again with the next report.
func (b *Broker) checkRepeated(unit telematics.Unit, r telematics.Report, at time.Time) {
	state := &telematics.Report{At: r.At, Values: r.Values}
	for _, a := range r.Answers {
		if a.State.IsOpen() || b.settled.contains(unit, a) {
			continue
		}
		if len(r.Values) > 0 {
			a.Report = state
		}
		b.metrics.answersRecalled.Inc()
		if from, ok := b.allowances.repeated.Admit(unit, 0, at); ok {
			b.enqueue(b.repeated, &queuedAnswer{unit: unit, answer: a, at: at, from: from}, recalledAnswer)
		} else {
			b.metrics.drop(recalledAnswer, queueFull, 1)
		}
	}
}

func (b *Broker) settleRepeated(ctx context.Context, a *queuedAnswer) {
	defer a.from.Handled(0)
	b.settleUncorrelated(ctx, a)
}

// cacheSettled caches a final answer that Postgres has accepted, or never will: the row of a
// command is older than any answer to it [LAW-1].
func (b *Broker) cacheSettled(unit telematics.Unit, a telematics.Answer) {
	if !a.State.IsOpen() {
		b.settled.add(unit, a)
	}
}
