package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/lib/pq"
	"github.com/redis/go-redis/v9"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// collectEvidence reads the accounts at the end.
func (r *round) collectEvidence(ctx context.Context) error {
	e := &r.evidence
	e.Calls = r.load.calls.All()
	var fromPostgres, fromLog, fromRedis, fromBroker error
	// It takes long: cars live on meanwhile, and settle commands.
	e.Presence, fromBroker = r.presence(ctx)
	e.Commands, fromPostgres = commands(ctx, r.watcher.db)
	e.AuditLog, fromLog = auditLog(ctx, r.watcher.db, `order by id`)
	e.Pending, fromRedis = r.pending(ctx)
	e.Flights, e.Published, e.Up, e.Reach = r.recorder.Events(), r.listener.received.All(), r.uptime.up(), r.uptime.reach()
	e.Tampered = r.tamper(ctx)
	e.Clocks = r.clocks.wrong
	e.Sound, e.Stalls = r.soundCars(), r.uptime.stalls()
	if r.Fault != "" { // else other faults delay and refuse commands meanwhile
		e.Locks = r.locks.All()
	}
	e.Halts, e.Delayed, e.Agencies = r.halts.All(), r.delayed(), map[telematics.Unit]telematics.AgencyID{}
	for car := 1; car <= r.Vehicles; car++ {
		e.Agencies[unitOf(car)] = agencyOf(car)
	}
	e.Others, e.Intrusions, e.Redelivered = r.fleet.others(), r.listener.intrusions.All(), redelivered(r.injections.All())
	e.Foreign = r.foreign.All()
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	e.Lanes, e.Sampled = r.watcher.conflicts, r.watcher.sampled
	if !r.lostFrom.IsZero() {
		// An entry is dated by its request, and may be written much later.
		e.Sampled = slices.DeleteFunc(slices.Clone(e.Sampled), func(l audit.LogEntry) bool { return l.ID > r.lostAbove })
	}
	if err := errors.Join(fromPostgres, fromLog, fromRedis, fromBroker); err != nil {
		return fmt.Errorf("collect the evidence: %w", err)
	}
	return nil
}

// delayed returns when messages of each instance to Mosquitto could be delayed, without being lost.
func (r *round) delayed() map[int][]audit.Interval {
	delayed := map[int][]audit.Interval{}
	for i, n := range r.Running {
		delayed[i] = r.uptime.stalls()
		for _, c := range r.clocks.wrong[i] {
			if c.Suspended { // and no clock of that machine told it
				delayed[i] = append(delayed[i], audit.Interval{From: c.From.Add(c.Ahead), To: c.From.Add(suspensionNoticed)})
			}
		}
		for _, s := range r.injections.All() {
			if s.Kind.Delays && (s.Target == n.Name || s.Target == Mosquitto || s.Target == ServerLine(i, Mosquitto)) {
				delayed[i] = append(delayed[i], audit.Interval{From: s.From, To: s.To})
			}
		}
	}
	return delayed
}

// redelivery is how long after a fault a server may still deliver again what it delivered before.
const redelivery = 30 * time.Second

// redelivered returns when an answer could be delivered twice: by a unit, or by Mosquitto, if it
// did not get the acknowledgement of an instance.
func redelivered(injections []injection) []audit.Interval {
	var all []audit.Interval
	for _, i := range injections {
		if i.Kind.Name == "answers duplicated" || i.Kind.Name == "instance killed" || i.Kind.Name == "instance frozen" ||
			i.Kind.Name == "instance stopped" || strings.Contains(i.Target, Mosquitto) {
			all = append(all, audit.Interval{From: i.From, To: i.To.Add(redelivery)})
		}
	}
	return all
}

// tamper tries to change the audit log, and returns the statements that were not refused. It rolls
// back what succeeds.
func (r *round) tamper(ctx context.Context) []string {
	var succeeded []string
	for _, attempt := range []string{
		`update activity set outcome = 'executed' where id = (select min(id) from activity)`,
		`delete from activity where id = (select max(id) from activity)`,
		`truncate activity`,
	} {
		tx, err := r.watcher.db.BeginTx(ctx, nil)
		if err != nil {
			succeeded = append(succeeded, fmt.Sprintf("not tried: %s: %v", attempt, err))
			continue
		}
		if _, err := tx.ExecContext(ctx, attempt); err == nil {
			succeeded = append(succeeded, attempt)
		}
		_ = tx.Rollback() // it may have ended already
	}
	return succeeded
}

// openRedis connects to a Redis, to the master that Sentinels name, or to a cluster.
func openRedis(url string) (redis.UniversalClient, error) {
	switch {
	case strings.Contains(url, "master_name="):
		o, err := redis.ParseFailoverURL(url)
		return redis.NewFailoverClient(o), err
	case strings.Contains(url, "addr="):
		o, err := redis.ParseClusterURL(url)
		return redis.NewClusterClient(o), err
	}
	o, err := redis.ParseURL(url)
	return redis.NewClient(o), err
}

// pending returns every key in Redis.
func (r *round) pending(ctx context.Context) ([]audit.RedisKey, error) {
	cluster, ok := r.redis.(*redis.ClusterClient)
	if !ok {
		return keysOf(ctx, r.redis)
	}
	cluster.ReloadState(ctx)
	var mu sync.Mutex
	var all []audit.RedisKey
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		keys, err := keysOf(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, keys...)
		return err
	})
	return all, err
}

func keysOf(ctx context.Context, server redis.Cmdable) ([]audit.RedisKey, error) {
	var entries []audit.RedisKey
	keys := server.Scan(ctx, 0, "motorpool:*", 1000).Iterator()
	for keys.Next(ctx) {
		ttl, err := server.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return nil, err
		}
		if ttl != keyGone {
			entries = append(entries, audit.RedisKey{Key: keys.Val(), TTL: ttl})
		}
	}
	return entries, keys.Err()
}

// keyGone is the TTL of a key that is gone.
const keyGone = time.Duration(-2)

// presenceWithin is how long the record may take to have what the broker retains.
const presenceWithin = 30 * time.Second

// presence compares what Mosquitto retains of the units of protocol v1 with the record, until both
// are the same, or the time is over.
func (r *round) presence(ctx context.Context) (all []audit.PresenceOf, err error) {
	_ = world.Eventually(ctx, presenceWithin, "the record has what mosquitto retains", func(ctx context.Context) bool {
		compared, failed := r.comparePresence(ctx)
		if failed != nil {
			if all == nil { // else the time was over during one comparison more
				err = failed
			}
			return false
		}
		all, err = compared, nil
		return retryLater(ctx, !slices.ContainsFunc(all, func(p audit.PresenceOf) bool { return p.Retained != p.Recorded }))
	}) // the audit shows what differs
	return all, err
}

func (r *round) comparePresence(ctx context.Context) ([]audit.PresenceOf, error) {
	retained, err := r.retainedPresence(ctx)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Serial, Status, Session string
		Actions, Keys           pq.StringArray
	}
	if err := r.watcher.db.SelectContext(ctx, &rows, `select serial, coalesce(status, '') as status, session,
		coalesce(actions, '{}') as actions, coalesce(keys, '{}') as keys from units`); err != nil {
		return nil, fmt.Errorf("read presence: %w", err)
	}
	recorded := map[telematics.Unit]string{}
	for _, row := range rows {
		recorded[telematics.Unit(row.Serial)] = presenceText(row.Status, row.Session, row.Keys, row.Actions)
	}
	var all []audit.PresenceOf
	for unit, text := range retained {
		all = append(all, audit.PresenceOf{Unit: unit, Retained: text, Recorded: recorded[unit]})
	}
	return all, nil
}

// presenceText is what a presence says, sorted.
func presenceText[K, A ~string](status, session string, keys []K, actions []A) string {
	keys, actions = slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(actions))
	return fmt.Sprintf("%s, session %s, keys %v, capabilities %v", status, session, keys, actions)
}

// quiet is after how long without a retained message there are no more.
const quiet = 500 * time.Millisecond

// retainedPresence reads what Mosquitto retains of the cars of protocol v1.
func (r *round) retainedPresence(ctx context.Context) (map[telematics.Unit]string, error) {
	var mu sync.Mutex
	found, last := map[telematics.Unit]string{}, time.Now()
	filter := v1.PresenceChannel.Filter()
	token := r.listener.watcher.Subscribe(filter, 1, func(_ paho.Client, m paho.Message) {
		unit, _, err := v1.ParseTopic(m.Topic())
		p, invalid := v1.DecodePresence(m.Payload(), time.Now())
		mu.Lock()
		defer mu.Unlock()
		if m.Retained() { // units say more meanwhile
			last = time.Now()
		}
		if err == nil && invalid == nil && unit != floodUnit {
			found[unit] = presenceText(string(p.Status), p.Session, p.Keys, p.Actions)
		}
	})
	if !token.WaitTimeout(mqttTimeout) || token.Error() != nil {
		return nil, fmt.Errorf("read retained presence: %w", token.Error())
	}
	err := world.Eventually(ctx, mqttTimeout, "all retained presence has come", func(context.Context) bool {
		mu.Lock()
		defer mu.Unlock()
		return time.Since(last) > quiet
	})
	r.listener.watcher.Unsubscribe(filter).WaitTimeout(mqttTimeout)
	mu.Lock()
	defer mu.Unlock()
	return found, err
}
