package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/cmd/chaos/audit"
	"motorpool/telematics"
)

// watcher reads from Postgres while commands run, not through a line.
type watcher struct {
	db  *sql.DB
	log *slog.Logger

	mu        sync.Mutex // guards what follows
	accepted  int        // commands on record
	conflicts []audit.LaneConflict
	seen      map[string]bool // the conflicts that were recorded
	sampled   []audit.LogEntry
	last      int64 // id of the newest sampled entry
}

const (
	watchInterval = 200 * time.Millisecond
	readTimeout   = 2 * time.Second
	// visible is how long after others with greater ids an audit log entry may become visible.
	visible = 5 * time.Second
)

func openWatcher(url string, log *slog.Logger) (*watcher, error) {
	db, err := sql.Open("postgres", url+"&connect_timeout=2")
	if err != nil {
		return nil, fmt.Errorf("watch postgres: %w", err)
	}
	db.SetMaxOpenConns(4)
	return &watcher{db: db, log: log, seen: map[string]bool{}}, nil
}

func (w *watcher) close() error { return w.db.Close() }

// run reads until the context ends. While Postgres is unavailable it reads nothing.
func (w *watcher) run(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.read(ctx)
		}
	}
}

func (w *watcher) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, read := range []func(context.Context) error{w.count, w.readLanes, w.sample} {
		if err := read(ctx); err != nil {
			w.log.Debug("postgres not read", "err", err)
			return
		}
	}
}

func (w *watcher) count(ctx context.Context) error {
	var n int
	if err := w.db.QueryRowContext(ctx, `select count(*) from commands`).Scan(&n); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = n
	return nil
}

// commands returns how many were on record at the last reading.
func (w *watcher) commands() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted
}

func (w *watcher) readLanes(ctx context.Context) error {
	rows, err := w.db.QueryContext(ctx, `
		select vehicle_id, lane, string_agg(id::text, ' ' order by seq) from commands
		where state in ('accepted', 'sent', 'received') group by vehicle_id, lane having count(*) > 1`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		c := audit.LaneConflict{At: time.Now()}
		var ids string
		if err := rows.Scan(&c.Vehicle, &c.Lane, &ids); err != nil {
			return err
		}
		for id := range strings.FieldsSeq(ids) {
			command, err := uuid.Parse(id)
			if err != nil {
				return err
			}
			c.Commands = append(c.Commands, command)
		}
		w.mu.Lock()
		if !w.seen[ids] {
			w.seen[ids] = true
			w.conflicts = append(w.conflicts, c)
		}
		w.mu.Unlock()
	}
	return rows.Err()
}

// sample keeps each audit log entry as it was when it was new.
func (w *watcher) sample(ctx context.Context) error {
	w.mu.Lock()
	last := w.last
	w.mu.Unlock()
	// Not the newest: entries may become visible out of order.
	entries, err := auditLog(ctx, w.db, `where id > $1 and at < now() - $2 * interval '1 second' order by id limit 2000`,
		last, visible.Seconds())
	if err != nil || len(entries) == 0 {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sampled = append(w.sampled, entries...)
	w.last = entries[len(entries)-1].ID
	return nil
}

func auditLog(ctx context.Context, db *sql.DB, which string, args ...any) ([]audit.LogEntry, error) {
	rows, err := db.QueryContext(ctx, `select id, at, coalesce(vehicle_id, 0), action, outcome, code,
		coalesce(command_id, '00000000-0000-0000-0000-000000000000'), coalesce(request_id::text, ''), late from activity `+which, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []audit.LogEntry
	for rows.Next() {
		var l audit.LogEntry
		if err := rows.Scan(&l.ID, &l.At, &l.Vehicle, &l.Action, &l.Outcome, &l.Code, &l.Command, &l.RequestID, &l.Late); err != nil {
			return nil, err
		}
		l.At = l.At.UTC()
		entries = append(entries, l)
	}
	return entries, rows.Err()
}

func commands(ctx context.Context, db *sql.DB) ([]audit.Row, error) {
	rows, err := db.QueryContext(ctx, `select id, vehicle_id, unit, action, lane, seq, state, late, attempts,
		coalesce(request_id::text, ''), requested_at, sent_at, received_at, completed_at, deadline from commands order by seq`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []audit.Row
	for rows.Next() {
		var r audit.Row
		var sent, received, completed sql.NullTime
		if err := rows.Scan(&r.ID, &r.Vehicle, &r.Unit, &r.Action, &r.Lane, &r.Seq, &r.State, &r.Late, &r.Attempts,
			&r.RequestID, &r.Requested, &sent, &received, &completed, &r.Deadline); err != nil {
			return nil, err
		}
		r.Requested, r.Deadline = r.Requested.UTC(), r.Deadline.UTC()
		for _, t := range []struct {
			to   *time.Time
			from sql.NullTime
		}{{&r.SentAt, sent}, {&r.ReceivedAt, received}, {&r.Completed, completed}} {
			if t.from.Valid {
				*t.to = t.from.Time.UTC()
			}
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// unsettled counts the commands that are open, and those that are unknown.
func (w *watcher) unsettled(ctx context.Context) (open, unknown int, err error) {
	err = w.db.QueryRowContext(ctx, `select count(*) filter (where state in ('accepted', 'sent', 'received')),
		count(*) filter (where state = $1) from commands`, telematics.Unknown).Scan(&open, &unknown)
	return open, unknown, err
}
