package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"motorpool/cmd/chaos/audit"
	"motorpool/telematics"
)

// gather takes down what each witness says at the end.
func (w *world) gather(ctx context.Context, l *load, strikes []strike) (audit.Evidence, error) {
	e := audit.Evidence{Seed: w.Seed, Calls: l.calls, Flights: w.recorder.Events(), Up: w.uptime.up(), Reach: w.uptime.reach(), Taken: w.air.messages()}
	e.Tampered = w.tamper(ctx)
	e.Clocks = w.wrongClocks(strikes)
	e.Halts, e.Delayed, e.Agencies = w.halts.all, w.delayed(strikes), map[telematics.Unit]telematics.AgencyID{}
	for car := 1; car <= w.Vehicles; car++ {
		e.Agencies[unitOf(car)] = agencyOf(car)
	}
	var fromPostgres, fromHistory, fromRedis error
	e.Commands, fromPostgres = commands(ctx, w.watch.db)
	e.History, fromHistory = history(ctx, w.watch.db, `order by id`)
	e.Pending, fromRedis = w.pending(ctx)
	w.watch.mu.Lock()
	defer w.watch.mu.Unlock()
	e.Lanes, e.Sampled = w.watch.conflicts, w.watch.sampled
	if err := errors.Join(fromPostgres, fromHistory, fromRedis); err != nil {
		return e, fmt.Errorf("gather the evidence: %w", err)
	}
	return e, nil
}

// delayed returns when the messages of each instance could be late on their way to Mosquitto, without being lost.
func (w *world) delayed(strikes []strike) map[int][]audit.Interval {
	delayed := map[int][]audit.Interval{}
	for i, n := range w.instances {
		delayed[i] = w.uptime.stalls()
		for _, s := range strikes {
			if s.Kind.late && (s.Target == n.Name || s.Target == mosquittoServer || s.Target == lineOf(i, mosquittoServer)) {
				delayed[i] = append(delayed[i], audit.Interval{From: s.From, To: s.To})
			}
		}
	}
	return delayed
}

// tamper tries to change the history, and returns what was not refused. It leaves no trace where it succeeds.
func (w *world) tamper(ctx context.Context) []string {
	var succeeded []string
	for _, attempt := range []string{
		`update activity set outcome = 'executed' where id = (select min(id) from activity)`,
		`delete from activity where id = (select max(id) from activity)`,
		`truncate activity`,
	} {
		tx, err := w.watch.db.BeginTx(ctx, nil)
		if err != nil {
			succeeded = append(succeeded, fmt.Sprintf("not tried: %s: %v", attempt, err))
			continue
		}
		if _, err := tx.ExecContext(ctx, attempt); err == nil {
			succeeded = append(succeeded, attempt)
		}
		_ = tx.Rollback() // it may have been refused already
	}
	return succeeded
}

// deadlinesIndex lists what is in flight by deadline, in milliseconds; a member ends in the command's id.
const deadlinesIndex = "motorpool:deadlines"

// pending returns what is in Redis: every key but the index, and those members of the index that should be gone.
func (w *world) pending(ctx context.Context) ([]audit.Entry, error) {
	options, err := redis.ParseURL(w.redis.URL())
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	defer client.Close()
	var entries []audit.Entry
	keys := client.Scan(ctx, 0, "motorpool:*", 1000).Iterator()
	for keys.Next(ctx) {
		if keys.Val() == deadlinesIndex {
			continue
		}
		ttl, err := client.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return nil, err
		}
		if ttl != gone {
			entries = append(entries, audit.Entry{Key: keys.Val(), TTL: ttl})
		}
	}
	if err := keys.Err(); err != nil {
		return nil, err
	}
	members, err := client.ZRangeWithScores(ctx, deadlinesIndex, 0, -1).Result()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		name, _ := m.Member.(string)
		_, id, _ := strings.Cut(name, ":")
		_, malformed := uuid.Parse(id)
		if overdue := time.Since(time.UnixMilli(int64(m.Score))); overdue > redisForgets || malformed != nil {
			entries = append(entries, audit.Entry{Key: deadlinesIndex + " " + name, TTL: forever})
		}
	}
	return entries, nil
}

// What Redis says of a key without an end, and of one that is gone.
const (
	forever = time.Duration(-1)
	gone    = time.Duration(-2)
)
