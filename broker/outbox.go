package broker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// outbox holds what is written to the stores later. Settlements that were not stored are retried
// until Postgres has answered, and audit log entries for entryRetryFor. Progress of commands and
// releases of pending entries, which may be lost, are written in batches.
type outbox struct {
	releases debouncer[delivery.Pending] // from the pending table
	progress debouncer[delivery.Note]    // of commands in flight

	mu sync.Mutex
	// Outcomes that only this process knows for certain: what a caller got must not be replaced
	// by a sweeper's guess. There are maxOutboxSettlements at most.
	settlements map[telematics.CommandID]delivery.Settlement
	entries     []telematics.Activity // at most maxOutboxEntries
}

// addSettlement reports false where there is no room.
func (o *outbox) addSettlement(s delivery.Settlement) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.settlements[s.Command]; !known && len(o.settlements) >= maxOutboxSettlements {
		return false
	}
	o.settlements[s.Command] = s
	return true
}

func (o *outbox) removeSettlement(id telematics.CommandID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.settlements, id)
}

func (o *outbox) settlement(id telematics.CommandID) (delivery.Settlement, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.settlements[id]
	return s, ok
}

func (o *outbox) allSettlements() []delivery.Settlement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.settlements))
}

func (o *outbox) waitingSettlements() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.settlements)
}

func (o *outbox) waitingEntries() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.entries)
}

// addEntry reports false where there is no room.
func (o *outbox) addEntry(entry telematics.Activity) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.entries) >= maxOutboxEntries {
		return false
	}
	o.entries = append(o.entries, entry)
	return true
}

func (o *outbox) drainEntries() []telematics.Activity {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries := o.entries
	o.entries = nil
	return entries
}

// retryOutbox retries the settlements and audit log entries that were not stored.
func (b *Broker) retryOutbox(ctx context.Context) {
	b.retrySettlements(ctx)
	b.retryEntries(ctx)
}

// closeOutbox writes what can be written before the end, and logs what cannot.
func (b *Broker) closeOutbox(ctx context.Context) {
	failed := b.retrySettlements(ctx)
	b.retryEntries(ctx)
	for _, one := range failed {
		b.loseSettlement(one.Settlement, one.err)
	}
	for _, entry := range b.outbox.drainEntries() {
		b.logLost(entry, notStored, context.Canceled)
	}
}

// keepSettlement keeps an outcome that only this process knows until it is stored.
func (b *Broker) keepSettlement(s delivery.Settlement) {
	if !b.outbox.addSettlement(s) {
		b.metrics.drop(settlement, queueFull, 1)
		b.config.Logger.Error("settlement lost", "command", s.Command, "request_id", requestOf(s.Known), "state", s.State)
	}
}

// loseSettlement counts and logs a settlement that is dropped at shutdown. The sweeper of any
// instance then records the command as unknown, whatever its caller got.
func (b *Broker) loseSettlement(s delivery.Settlement, err error) {
	b.outbox.removeSettlement(s.Command)
	b.metrics.drop(settlement, notStored, 1)
	b.config.Logger.Error("settlement lost", "command", s.Command, "request_id", requestOf(s.Known), "state", s.State, "err", err)
}

// failedSettlement is a settlement that was not stored now.
type failedSettlement struct {
	delivery.Settlement
	err error
}

// retrySettlements retries the settlements that were not stored, and returns those that still are
// not. One whose command is not on record is retried for settlementRetryFor, and while Postgres
// may still commit the claim of the command: a claim that waits for a synchronous standby does so
// for as long as the standby is gone.
func (b *Broker) retrySettlements(ctx context.Context) (failed []failedSettlement) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	mayAppear := b.config.Hanging() > 0 // before the records are read
	var group errgroup.Group
	group.SetLimit(sweepBatch) // they share statements
	var mu sync.Mutex          // guards failed
	for _, settlement := range b.outbox.allSettlements() {
		group.Go(func() error {
			var ok bool
			err := b.config.Guard.Try("retry settlement", func() (err error) {
				_, ok, err = b.storeSettlement(ctx, settlement)
				return err
			})
			switch {
			case ok || err == nil && !mayAppear && b.recordTime().Sub(settlement.At) > settlementRetryFor:
				b.outbox.removeSettlement(settlement.Command)
			case err != nil:
				mu.Lock()
				failed = append(failed, failedSettlement{settlement, err})
				mu.Unlock()
				b.config.Logger.Debug(
					"settlement not stored, retrying", "command", settlement.Command,
					"request_id", requestOf(settlement.Known), "state", settlement.State, "err", err,
				)
			}
			return nil
		})
	}
	_ = group.Wait()
	return failed
}

func (b *Broker) retryEntries(ctx context.Context) {
	entries := b.outbox.drainEntries()
	if len(entries) == 0 {
		return
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(sweepBatch) // they share statements
	for _, entry := range entries {
		group.Go(func() error {
			err := b.config.Guard.Try("retry audit log entry", func() error { return b.config.AuditLog.Add(ctx, entry) })
			switch {
			case err == nil:
			case b.isOld(entry):
				b.logLost(entry, notStored, err)
			case !b.outbox.addEntry(entry):
				b.logLost(entry, queueFull, err)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// isOld reports whether an entry is not retried any more. Entries are dated by this instance's
// clock, or by that clock corrected.
func (b *Broker) isOld(entry telematics.Activity) bool {
	return b.now().Sub(entry.At) > entryRetryFor && b.recordTime().Sub(entry.At) > entryRetryFor
}

func (b *Broker) logLost(entry telematics.Activity, reason string, err error) {
	b.metrics.drop(auditLogEntry, reason, 1)
	b.config.Logger.Error("audit log entry lost", "vehicle", entry.Vehicle, "action", entry.Action,
		"code", entry.Code, "request_id", entry.RequestID, "err", err)
}

// Record adds an entry to the audit log, and blocks for one step at most. An entry that is not
// stored is retried for entryRetryFor, and then counted and logged as lost; immediately, where
// the outbox is full.
func (b *Broker) Record(ctx context.Context, entry telematics.Activity) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	err := b.config.AuditLog.Add(ctx, entry)
	if err == nil {
		return
	}
	if !b.outbox.addEntry(entry) {
		b.logLost(entry, queueFull, err)
		return
	}
	b.config.Logger.DebugContext(
		ctx, "audit log entry not stored, retrying", "vehicle", entry.Vehicle, "action", entry.Action,
		"request_id", entry.RequestID, "err", err,
	)
}

// Omit counts an entry that is not added to the audit log, because its actor was refused too
// often.
func (b *Broker) Omit(ctx context.Context, entry telematics.Activity) {
	b.metrics.refusalsNotRecorded.Inc()
	b.config.Logger.DebugContext(
		ctx, "refusal not recorded", "actor", entry.Actor.Subject, "agency", entry.Actor.Agency, "action", entry.Action,
		"code", entry.Code, "request_id", entry.RequestID,
	)
}

// storeProgress queues the progress of a command to be stored. Readers of the command depend on
// it, and instances that settle or conclude it in place of its owner: without the time at which
// it was sent, no report confirms it. Progress that is not stored is stored after the next
// publication.
func (b *Broker) storeProgress(ctx context.Context, w *waiter) {
	if p := w.progress(); p.Attempts > 0 || !p.ReceivedAt.IsZero() {
		b.outbox.progress.add(ctx, delivery.Note{Command: w.command.ID, Progress: p})
	}
}

func (b *Broker) writeProgress(ctx context.Context, notes []delivery.Note) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	err := b.config.Commands.StoreProgress(ctx, notes)
	if err == nil {
		return
	}
	b.config.Logger.Debug("progress of commands not stored", "commands", len(notes), "err", err)
	for _, n := range notes {
		if w := b.waiters.find(n.Command); w != nil {
			w.progressLost.Store(true)
		}
	}
}

func (b *Broker) writeReleases(ctx context.Context, entries []delivery.Pending) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := b.config.Pending.Release(ctx, entries...); err != nil {
		b.config.Logger.Debug("pending entries not released, left to expire", "commands", len(entries), "err", err)
	}
}

// debouncer collects values for a short time, and flushes them as one batch. What is added during
// a flush waits until it has ended: batches are flushed one after the other.
type debouncer[T any] struct {
	after      time.Duration
	flush      func(context.Context, []T)
	guard      *guard.Guard
	background *sync.WaitGroup

	mu      sync.Mutex
	values  []T
	running bool
}

func (d *debouncer[T]) add(ctx context.Context, v T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.values = append(d.values, v); d.running {
		return // it is flushed with the others
	}
	d.running = true
	d.background.Go(func() { _ = d.guard.Keep(context.WithoutCancel(ctx), "flush batches", d.run) })
}

func (d *debouncer[T]) run(ctx context.Context) error {
	for {
		time.Sleep(d.after)
		batch := d.drain()
		if len(batch) == 0 {
			return nil
		}
		_ = d.guard.Do("flush", func() { d.flush(ctx, batch) })
	}
}

// drain returns the next batch. An empty one ends the run.
func (d *debouncer[T]) drain() []T {
	d.mu.Lock()
	defer d.mu.Unlock()
	batch := d.values
	d.values, d.running = nil, len(batch) > 0
	return batch
}
