package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/chaos/fault"
	"motorpool/telematics"
)

// watcher reads from Postgres while commands run, not through a line.
type watcher struct {
	db  *sqlx.DB
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
	db, err := sqlx.Open("postgres", url+"&connect_timeout=2")
	if err != nil {
		return nil, fmt.Errorf("watch postgres: %w", err)
	}
	db.SetMaxOpenConns(4 + fault.Agencies + 1 + len(fault.LockedTables)) // some hold locks
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
	if err := w.db.GetContext(ctx, &n, `select count(*) from commands`); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = n
	return nil
}

// commands returns how many commands Postgres had at the last reading.
func (w *watcher) commands() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted
}

func (w *watcher) readLanes(ctx context.Context) error {
	var open []struct {
		audit.LaneConflict
		IDs string
	}
	if err := w.db.SelectContext(ctx, &open, `
		select vehicle_id as vehicle, lane, string_agg(id::text, ' ' order by seq) as ids from commands
		where state in ('accepted', 'sent', 'received') group by vehicle_id, lane having count(*) > 1`); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range open {
		if w.seen[c.IDs] {
			continue
		}
		w.seen[c.IDs] = true
		c.At = time.Now()
		for id := range strings.FieldsSeq(c.IDs) {
			c.Commands = append(c.Commands, uuid.MustParse(id)) // as Postgres writes it
		}
		w.conflicts = append(w.conflicts, c.LaneConflict)
	}
	return nil
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

func auditLog(ctx context.Context, db *sqlx.DB, which string, args ...any) (entries []audit.LogEntry, err error) {
	err = db.SelectContext(ctx, &entries, `select id, at, coalesce(vehicle_id, 0) as vehicle, action, outcome, code,
		coalesce(command_id, '00000000-0000-0000-0000-000000000000') as command, coalesce(request_id::text, '') as requestid, late from activity `+which, args...)
	return entries, err
}

// contradicted is the bit of a command's assurance that a report has contradicted it.
const contradicted = 128

// commands reads all commands from Postgres; a time without a value is zero.
func commands(ctx context.Context, db *sqlx.DB) (rows []audit.Row, err error) {
	err = db.SelectContext(ctx, &rows, `select id, vehicle_id as vehicle, unit, action, lane, seq, state, late, attempts,
		coalesce(request_id::text, '') as requestid, requested_at as requested, coalesce(sent_at, $1) as sentat,
		coalesce(received_at, $1) as receivedat, coalesce(completed_at, $1) as completed, deadline,
		coalesce(assurance & $2 <> 0, false) as contradicted from commands order by seq`, time.Time{}, contradicted)
	return rows, err
}

// unsettled counts the commands that are open, and those that are unknown.
func (w *watcher) unsettled(ctx context.Context) (open, unknown int, err error) {
	err = w.db.QueryRowContext(ctx, `select count(*) filter (where state in ('accepted', 'sent', 'received')),
		count(*) filter (where state = $1) from commands`, telematics.Unknown).Scan(&open, &unknown)
	return open, unknown, err
}
