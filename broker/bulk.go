package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// SendMany starts a command for each vehicle of an order. It blocks until each has a command or a
// refusal, and does not wait for answers. An order that repeats an earlier one, by its idempotency
// key, sends nothing and returns the earlier one in its present state. A cancelled context is
// ignored.
func (b *Broker) SendMany(ctx context.Context, order *delivery.BulkOrder) (bulk telematics.Bulk, replayed bool, err error) {
	return Many{
		Bulks: b.config.Bulks, FindByKey: b.config.Commands.FindByKey, Start: b.Start, Record: b.Record,
		Now: b.recordTime, Logger: b.config.Logger, guard: b.config.Guard,
	}.Send(ctx, order)
}

// Many sends orders to many vehicles. All its fields are required.
type Many struct {
	Bulks     Bulks
	FindByKey func(context.Context, telematics.IdempotencyKey) (delivery.KeyResult, bool, error)
	Start     func(context.Context, *delivery.Order) (delivery.Receipt, error)
	Record    func(context.Context, telematics.Activity) // adds an audit log entry
	Now       func() time.Time
	Logger    *slog.Logger
	guard     *guard.Guard
}

// errOutOfTime is the cause where telematics.BulkFor passed before a vehicle had its turn.
var errOutOfTime = errors.New("the order to many vehicles took too long")

// Send implements Broker.SendMany.
func (m Many) Send(ctx context.Context, order *delivery.BulkOrder) (bulk telematics.Bulk, replayed bool, err error) {
	ctx = context.WithoutCancel(ctx)
	order.Requested = m.Now()
	keyTaken, err := m.Bulks.OpenBulk(ctx, order.Bulk)
	if err == nil && keyTaken {
		if bulk, replayed, err = m.earlier(ctx, *order.Key); replayed {
			m.record(ctx, order, telematics.Activity{Action: telematics.BulkOrder, Code: telematics.IdempotencyReplayed})
			return bulk, true, nil
		}
		if err == nil {
			keyTaken, err = m.Bulks.OpenBulk(ctx, order.Bulk)
		}
		if err == nil && keyTaken { // by the same request, a moment ago
			err = telematics.StillOpen(telematics.NoCommand)
		}
	}
	if err == nil {
		return m.start(ctx, order), false, nil
	}
	var refusal *telematics.Error
	if !errors.As(err, &refusal) {
		refusal = telematics.Unavailable("Postgres", err)
	}
	m.record(ctx, order, telematics.Activity{Action: telematics.BulkOrder, Code: refusal.Code, Outcome: telematics.NotExecuted})
	return telematics.Bulk{}, false, refusal
}

// earlier returns the bulk of an idempotency key, in its present state; false: the key is free
// again.
func (m Many) earlier(ctx context.Context, key telematics.IdempotencyKey) (telematics.Bulk, bool, error) {
	made, found, err := m.FindByKey(ctx, key)
	switch {
	case err != nil || !found:
		return telematics.Bulk{}, false, err
	case made.Fingerprint != key.Fingerprint:
		return telematics.Bulk{}, false, telematics.KeyMismatch()
	}
	b, err := m.Bulks.Bulk(ctx, made.Bulk)
	return b, err == nil, err
}

// start starts a command for each vehicle, bulkWorkers at a time, until telematics.BulkFor has
// passed, and records why the other vehicles have none. Recording has a separate timeout: there is
// most to record where BulkFor has passed.
func (m Many) start(ctx context.Context, order *delivery.BulkOrder) telematics.Bulk {
	starting, cancel := context.WithTimeout(ctx, telematics.BulkFor)
	defer cancel()
	bulk := order.Bulk
	bulk.Items = make([]telematics.BulkItem, len(bulk.Vehicles))
	m.concurrently(len(bulk.Items), func(i int) {
		if err := m.guard.Do("start command", func() { bulk.Items[i] = m.startOne(starting, order, bulk.Vehicles[i]) }); err != nil {
			bulk.Items[i] = telematics.BulkItem{Vehicle: bulk.Vehicles[i], Refusal: telematics.Broken(err)}
		}
	})
	recording, cancel := context.WithTimeout(ctx, bulkRecordTimeout)
	defer cancel()
	m.concurrently(len(bulk.Items), func(i int) {
		if item := bulk.Items[i]; item.Refusal != nil && errors.Is(item.Refusal, errOutOfTime) {
			m.recordOmitted(recording, order, item.Vehicle, item.Refusal)
		}
	})
	m.recordUnknown(recording, order, bulk.Items)
	// Where this fails, the audit log and the response still have the refusals.
	if err := m.Bulks.RefuseBulk(recording, bulk.ID, bulk.Items); err != nil {
		m.Logger.WarnContext(ctx, "refusals of a bulk not stored", "bulk", bulk.ID, "err", err)
	}
	return bulk
}

func (m Many) concurrently(n int, do func(int)) {
	var group errgroup.Group
	group.SetLimit(bulkWorkers)
	for i := range n {
		group.Go(func() error { return m.guard.Do("handle a vehicle of an order", func() { do(i) }) })
	}
	_ = group.Wait()
}

func (m Many) startOne(ctx context.Context, order *delivery.BulkOrder, vehicle telematics.VehicleID) telematics.BulkItem {
	item := telematics.BulkItem{Vehicle: vehicle}
	if ctx.Err() != nil {
		item.Refusal = telematics.Unavailable("A server of ours", errOutOfTime)
		return item
	}
	if order.Admit != nil {
		if item.Refusal = order.Admit(ctx, vehicle); item.Refusal != nil {
			m.recordOmitted(ctx, order, vehicle, item.Refusal)
			return item
		}
	}
	receipt, err := m.Start(ctx, &delivery.Order{
		Vehicle: vehicle, Action: order.Action, Attention: order.Attention, Budget: order.Budget,
		Actor: order.Actor, RequestID: order.RequestID, Bulk: order.ID,
	})
	if item.Command = receipt.Command; err != nil && !errors.As(err, &item.Refusal) {
		item.Refusal = telematics.Unavailable("Postgres", err)
	}
	return item
}

// recordOmitted records that a vehicle has no command, where Start was not called for it [LAW-9].
func (m Many) recordOmitted(ctx context.Context, order *delivery.BulkOrder, vehicle telematics.VehicleID, refusal *telematics.Error) {
	m.record(ctx, order, telematics.Activity{
		Vehicle: vehicle, Action: telematics.CommandActivity(order.Action), Attention: order.Attention,
		Outcome: telematics.NotExecuted, Code: refusal.Code,
	})
}

// recordUnknown records, in one entry, which vehicles do not exist, or are hidden from the actor:
// one request must not write an entry for each number that a caller invents [LAW-9].
func (m Many) recordUnknown(ctx context.Context, order *delivery.BulkOrder, items []telematics.BulkItem) {
	var unknown int
	var first []telematics.VehicleID
	for _, item := range items {
		if item.Refusal == nil || item.Refusal.Code != telematics.VehicleNotFound {
			continue
		}
		if unknown++; unknown <= bulkUnknownNamed {
			first = append(first, item.Vehicle)
		}
	}
	if unknown > 0 {
		m.record(ctx, order, telematics.Activity{
			Action: telematics.CommandActivity(order.Action), Details: map[string]any{"unknown_vehicles": unknown, "vehicle_ids": first},
			Outcome: telematics.NotExecuted, Code: telematics.VehicleNotFound,
		})
	}
}

func (m Many) record(ctx context.Context, order *delivery.BulkOrder, entry telematics.Activity) {
	entry.At, entry.Actor, entry.Agency, entry.RequestID = m.Now(), order.Actor, order.Actor.Agency, order.RequestID
	entry.Latency = entry.At.Sub(order.Requested)
	m.Record(ctx, entry)
}
