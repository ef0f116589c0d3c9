package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"motorpool/store/groupcommit"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// pendingKey returns the key of an entry. The serial in braces, the hash tag, keeps the keys of one
// unit on one node of a cluster.
func pendingKey(unit telematics.Unit, id telematics.CommandID) string {
	return "motorpool:{" + string(unit) + "}:pending:" + id.String()
}

func wakeChannel(instance string) string { return "motorpool:wake:" + instance }

// pendingRow is the JSON of an entry.
type pendingRow struct {
	Command  uuid.UUID            `json:"command"`
	Vehicle  telematics.VehicleID `json:"vehicle"`
	Unit     telematics.Unit      `json:"unit"`
	Instance string               `json:"instance"`
	Deadline int64                `json:"deadline"` // milliseconds since the epoch
}

func encodePending(p *delivery.Pending) string {
	// Cannot fail.
	entry, _ := json.Marshal(pendingRow{p.Command, p.Vehicle, p.Unit, p.Instance, p.Deadline.UnixMilli()})
	return string(entry)
}

func decodePending(entry string) (delivery.Pending, error) {
	var row pendingRow
	if err := json.Unmarshal([]byte(entry), &row); err != nil {
		return delivery.Pending{}, fmt.Errorf("decode pending command: %w", err)
	}
	return delivery.Pending{
		Command: row.Command, Vehicle: row.Vehicle, Unit: row.Unit, Instance: row.Instance,
		Deadline: time.UnixMilli(row.Deadline).UTC(),
	}, nil
}

// PendingTable holds the pending entries: which instance waits for the answer to a command. It is
// safe for concurrent use.
type PendingTable struct {
	db            *DB
	registrations []*groupcommit.Batcher[delivery.Pending, error] // by part of the cluster
}

// NewPendingTable returns the table in Redis.
func NewPendingTable(db *DB) *PendingTable {
	t := &PendingTable{db: db}
	for range db.parts {
		t.registrations = append(t.registrations, NewBatcher(db.Guard, t.register))
	}
	return t
}

// Register implements broker.PendingTable. The entry expires a minute after its deadline.
func (t *PendingTable) Register(p delivery.Pending) (added func(context.Context) error) {
	registrations := t.registrations[0]
	if t.db.isCluster() {
		registrations = t.registrations[partOf(string(p.Unit))]
	}
	call := registrations.Begin(p)
	return func(ctx context.Context) error {
		refused, err := registrations.Wait(ctx, call)
		return unavailable.Wrap("register command", cmp.Or(err, refused))
	}
}

// register adds entries in one round trip, and returns an error for each.
func (t *PendingTable) register(ctx context.Context, commands []delivery.Pending) ([]error, error) {
	entries := make([]*redis.StatusCmd, len(commands))
	pipe := t.db.Client.Pipeline()
	for i, p := range commands {
		keep := max(time.Until(p.Deadline)+pendingFor, time.Millisecond)
		entries[i] = pipe.Set(ctx, pendingKey(p.Unit, p.Command), encodePending(&commands[i]), keep)
	}
	_, _ = pipe.Exec(ctx)
	refused := make([]error, len(commands))
	for i, entry := range entries {
		refused[i] = entry.Err()
	}
	return refused, nil
}

// Lookup returns the entry of a command that was sent to the unit.
func (t *PendingTable) Lookup(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (delivery.Pending, bool, error) {
	entry, err := t.db.Client.Get(ctx, pendingKey(unit, id)).Result()
	if errors.Is(err, redis.Nil) {
		return delivery.Pending{}, false, nil
	}
	var p delivery.Pending
	if err == nil {
		p, err = decodePending(entry)
	}
	return p, err == nil, unavailable.Wrap("look up command", err)
}

// Contains reports for each of the commands whether it has an entry. It uses only Unit and Command.
func (t *PendingTable) Contains(ctx context.Context, commands []delivery.Pending) ([]bool, error) {
	found := make([]bool, 0, len(commands))
	for trip := range slices.Chunk(commands, tripBatch) {
		entries := make([]*redis.IntCmd, len(trip))
		_, err := t.db.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, p := range trip {
				// One call for each: in a cluster they are in different slots.
				entries[i] = pipe.Exists(ctx, pendingKey(p.Unit, p.Command))
			}
			return nil
		})
		if err != nil {
			return nil, unavailable.Wrap("look up commands", err)
		}
		for _, entry := range entries {
			found = append(found, entry.Val() > 0)
		}
	}
	return found, nil
}

// Release removes the entries of commands that have no waiter any more. It is idempotent.
func (t *PendingTable) Release(ctx context.Context, entries ...delivery.Pending) error {
	for trip := range slices.Chunk(entries, tripBatch) {
		_, err := t.db.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, p := range trip {
				pipe.Del(ctx, pendingKey(p.Unit, p.Command)) // one by one: a cluster has them apart
			}
			return nil
		})
		if err != nil {
			return unavailable.Wrap("release commands", err)
		}
	}
	return nil
}

// Wake publishes to an instance that a command has changed. It is a hint: it may get lost.
func (t *PendingTable) Wake(ctx context.Context, instance string, id telematics.CommandID) error {
	return unavailable.Wrap("wake instance", t.db.Client.Publish(ctx, wakeChannel(instance), id.String()).Err())
}

// Listen implements broker.PendingTable. Hints that come while Redis is unavailable are lost.
func (t *PendingTable) Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error {
	t.db.Retry(ctx, "redis subscription lost", func(ctx context.Context, subscribed func()) error {
		return t.listenOnce(ctx, instance, subscribed, wake)
	})
	return nil
}

// listenOnce serves one subscription until it is lost. It calls subscribed once Redis
// has granted it.
func (t *PendingTable) listenOnce(ctx context.Context, instance string, subscribed func(), wake func(telematics.CommandID)) error {
	subscription := t.db.Client.Subscribe(ctx, wakeChannel(instance))
	defer subscription.Close()
	// The library's read does not end with its context.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer stop()
	pinged := false
	for {
		message, err := subscription.ReceiveTimeout(ctx, PingAfter)
		var network net.Error
		switch {
		case errors.As(err, &network) && network.Timeout() && !pinged:
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			pinged = true
			continue
		case err != nil:
			return err
		}
		pinged = false
		switch message := message.(type) {
		case *redis.Subscription:
			t.db.Log.Debug("listening for wake-ups", "instance", instance)
			subscribed()
		case *redis.Message:
			if id, err := uuid.Parse(message.Payload); err == nil {
				wake(id)
			}
		}
	}
}
