package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// pendingFor is how long an entry outlives its deadline, for late answers.
const pendingFor = time.Minute

// deadlinesKey is a sorted set of what is in flight, by deadline in milliseconds. A cluster has one in each of its parts.
const deadlinesKey = "motorpool:deadlines"

// readyKey is what readiness writes, likewise.
const readyKey = "motorpool:ready"

// The serial in braces keeps what belongs to one vehicle on one node of a cluster.
func pendingKey(unit telematics.Unit, id telematics.CommandID) string {
	return "motorpool:{" + string(unit) + "}:pending:" + id.String()
}

func wakeChannel(instance string) string { return "motorpool:wake:" + instance }

// deadlinesMember names an entry in deadlinesKey. Serials have no colon.
func deadlinesMember(unit telematics.Unit, id telematics.CommandID) string {
	return string(unit) + ":" + id.String()
}

// pendingRow is the JSON of an entry.
type pendingRow struct {
	Command  uuid.UUID            `json:"command"`
	Vehicle  telematics.VehicleID `json:"vehicle"`
	Unit     telematics.Unit      `json:"unit"`
	Instance string               `json:"instance"`
	Deadline int64                `json:"deadline"` // milliseconds since the epoch
}

func encodePending(p *delivery.Pending) string {
	return pg.JSON(pendingRow{Command: p.Command, Vehicle: p.Vehicle, Unit: p.Unit, Instance: p.Instance, Deadline: p.Deadline.UnixMilli()})
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

// Register begins to add a command, and returns what waits until it is added. The entry goes by itself a minute
// after its deadline; those in the index of deadlines go with the next that comes.
func (r *Redis) Register(p delivery.Pending) (added func(context.Context) error) {
	registrations := r.partOf(p.Unit).registrations
	call := registrations.Begin(p)
	return func(ctx context.Context) error {
		refused, err := registrations.Wait(ctx, call)
		return unavailable.Wrap("register command", cmp.Or(err, refused))
	}
}

// register adds commands in one trip. Where a part of a cluster is unavailable, the others are added. The index of deadlines is for
// display alone: where it is not written, the commands are added all the same.
func (r *Redis) register(ctx context.Context, index string, indexing *unavailable.Breaker, commands []delivery.Pending) ([]error, error) {
	entries := make([]*redis.StatusCmd, len(commands))
	deadlines := make([]redis.Z, len(commands))
	for i, p := range commands {
		deadlines[i] = redis.Z{Score: float64(p.Deadline.UnixMilli()), Member: deadlinesMember(p.Unit, p.Command)}
	}
	pipe := r.client.Pipeline()
	for i, p := range commands {
		keep := max(time.Until(p.Deadline)+pendingFor, time.Millisecond)
		entries[i] = pipe.Set(ctx, pendingKey(p.Unit, p.Command), encodePending(&commands[i]), keep)
	}
	indexed := pipe.ZAdd(ctx, index, deadlines...)
	pipe.ZRemRangeByScore(ctx, index, "-inf", gone())
	pipe.Expire(ctx, index, telematics.MaxBudget+pendingFor) // with its last entry, at the latest
	_, _ = pipe.Exec(ctx)                                    // each command has its own error
	refused := make([]error, len(commands))
	added := 0
	for i, entry := range entries {
		if refused[i] = entry.Err(); refused[i] == nil {
			added++
		}
	}
	if added > 0 { // else the server itself is unavailable, which the commands' errors say
		indexing.Record(unavailable.Wrap("index commands in flight", indexed.Err()))
	}
	return refused, nil
}

// gone is the latest deadline, in milliseconds, whose entry is gone.
func gone() string {
	return strconv.FormatInt(time.Now().Add(-pendingFor).UnixMilli(), 10)
}

// Lookup returns the entry of a command that was sent to the unit.
func (r *Redis) Lookup(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (delivery.Pending, bool, error) {
	entry, err := r.client.Get(ctx, pendingKey(unit, id)).Result()
	if errors.Is(err, redis.Nil) {
		return delivery.Pending{}, false, nil
	}
	if err != nil {
		return delivery.Pending{}, false, unavailable.Wrap("look up command", err)
	}
	p, err := decodePending(entry)
	return p, err == nil, unavailable.Wrap("look up command", err)
}

// Contains reports of each of the commands, by its unit and id alone, whether there is an entry.
func (r *Redis) Contains(ctx context.Context, commands []delivery.Pending) ([]bool, error) {
	found := make([]bool, 0, len(commands))
	for trip := range slices.Chunk(commands, tripBatch) {
		entries := make([]*redis.IntCmd, len(trip))
		_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, p := range trip {
				entries[i] = pipe.Exists(ctx, pendingKey(p.Unit, p.Command)) // one by one: a cluster has them apart
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

// Release removes commands that nobody waits for any more.
func (r *Redis) Release(ctx context.Context, entries ...delivery.Pending) error {
	for trip := range slices.Chunk(entries, tripBatch) {
		members := map[string][]any{}
		_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, p := range trip {
				pipe.Del(ctx, pendingKey(p.Unit, p.Command)) // one by one: a cluster has them apart
				index := r.partOf(p.Unit).deadlines
				members[index] = append(members[index], deadlinesMember(p.Unit, p.Command))
			}
			for index, gone := range members {
				pipe.ZRem(ctx, index, gone...)
			}
			return nil
		})
		if err != nil {
			return unavailable.Wrap("release commands", err)
		}
	}
	return nil
}

// InFlight returns the commands that wait for an answer, by deadline.
func (r *Redis) InFlight(ctx context.Context) ([]delivery.Pending, error) {
	var members []string
	for _, p := range r.parts {
		indexed, err := r.client.ZRangeByScore(ctx, p.deadlines, &redis.ZRangeBy{Min: "(" + gone(), Max: "+inf"}).Result()
		if err != nil {
			return nil, unavailable.Wrap("list commands in flight", err)
		}
		members = append(members, indexed...)
	}
	entries, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, member := range members {
			serial, text, _ := strings.Cut(member, ":")
			if id, err := uuid.Parse(text); err == nil {
				pipe.Get(ctx, pendingKey(telematics.Unit(serial), id))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, unavailable.Wrap("list commands in flight", err)
	}
	var inFlight []delivery.Pending
	for _, entry := range entries {
		text, err := entry.(*redis.StringCmd).Result()
		if errors.Is(err, redis.Nil) {
			continue // went meanwhile
		}
		if err != nil {
			return nil, unavailable.Wrap("list commands in flight", err)
		}
		p, err := decodePending(text)
		if err != nil {
			return nil, unavailable.Wrap("list commands in flight", err)
		}
		inFlight = append(inFlight, p)
	}
	slices.SortStableFunc(inFlight, func(a, b delivery.Pending) int { return a.Deadline.Compare(b.Deadline) })
	return inFlight, nil
}

// Wake tells an instance that there is news of a command. It is a hint: it may get lost.
func (r *Redis) Wake(ctx context.Context, instance string, id telematics.CommandID) error {
	return unavailable.Wrap("wake instance", r.client.Publish(ctx, wakeChannel(instance), id.String()).Err())
}

// Listen calls wake for each hint to an instance, one after another, until the
// context ends. While Redis is away it keeps trying; hints of that time are lost.
func (r *Redis) Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := r.listenOnce(ctx, instance, pause.Reset, wake)
		if ctx.Err() != nil {
			return nil
		}
		r.log.Warn("lost the wake-ups of redis", "instance", instance, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause.NextBackOff()):
		}
	}
}

// quietFor is the silence after which the server is asked whether it is still there.
const quietFor = 3 * time.Second

// listenOnce serves one subscription until it is lost. It calls subscribed once Redis
// has granted it.
func (r *Redis) listenOnce(ctx context.Context, instance string, subscribed func(), wake func(telematics.CommandID)) error {
	subscription := r.client.Subscribe(ctx, wakeChannel(instance))
	defer subscription.Close()
	// The library's read does not end with its context.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer stop()
	asked := false
	for {
		message, err := subscription.ReceiveTimeout(ctx, quietFor)
		var network net.Error
		switch {
		case errors.As(err, &network) && network.Timeout() && !asked:
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			asked = true
			continue
		case err != nil:
			return err
		}
		asked = false
		switch message := message.(type) {
		case *redis.Subscription:
			r.log.Debug("listening for wake-ups", "instance", instance)
			subscribed()
		case *redis.Message:
			if id, err := uuid.Parse(message.Payload); err == nil {
				wake(id)
			}
		}
	}
}
