package broker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
)

// owedFor is how long a finding is offered to the record. A row whose claim was believed
// lost may appear for as long as a statement may take.
const owedFor = time.Minute

// owed are findings that this process alone can vouch for, and that the record may not
// have taken yet: what the caller was told must not be overwritten by a guess.
type owed struct {
	mu   sync.Mutex
	byID map[telematics.CommandID]telematics.Settlement
}

func (o *owed) add(finding telematics.Settlement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byID == nil {
		o.byID = make(map[telematics.CommandID]telematics.Settlement)
	}
	o.byID[finding.Command] = finding
}

func (o *owed) remove(id telematics.CommandID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byID, id)
}

func (o *owed) find(id telematics.CommandID) (telematics.Settlement, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	finding, ok := o.byID[id]
	return finding, ok
}

func (o *owed) all() []telematics.Settlement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.byID))
}

// payOwed offers the findings to the record again.
func (b *Broker) payOwed(ctx context.Context) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(sweepBatch)
	for _, finding := range b.owed.all() {
		group.Go(func() error {
			_, ok, err := b.Commands.Settle(ctx, finding)
			if ok || b.recordTime().Sub(finding.At) > owedFor {
				b.owed.remove(finding.Command)
			}
			if err != nil {
				b.Logger.Debug("finding not written down", "command", finding.Command, "state", finding.State, "err", err)
			}
			return nil
		})
	}
	_ = group.Wait()
}
