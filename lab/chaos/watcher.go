package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
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
	db.SetMaxOpenConns(4 + Agencies + 1 + len(LockedTables)) // some hold locks
	return &watcher{db: db, log: log, seen: map[string]bool{}}, nil
}

func (w *watcher) close() error { return w.db.Close() }

// run reads until the context ends. While Postgres is unavailable it reads nothing.
func (w *watcher) run(ctx context.Context) {
	for ; ctx.Err() == nil; world.Pause(ctx, watchInterval) {
		w.read(ctx)
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
	if err := w.db.GetContext(ctx, &n, `select (select count(*) from commands) + (select count(*) from settled_commands)`); err != nil {
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
		coalesce(command_id, '00000000-0000-0000-0000-000000000000') as command, coalesce(request_id::text, '') as requestid, late
		from activity `+which, args...)
	return entries, err
}

// contradicted is the bit of a command's assurance that a report has contradicted it.
const contradicted = 128

// commands reads all commands from Postgres, those included that were settled days ago; a time
// without a value is zero.
func commands(ctx context.Context, db *sqlx.DB) (rows []audit.Row, err error) {
	columns := `id, vehicle_id, unit, action, lane, seq, state, late, attempts, request_id, requested_at, sent_at, received_at,
		completed_at, deadline, assurance`
	err = db.SelectContext(ctx, &rows, `select id, vehicle_id as vehicle, unit, action, lane, seq, state, late, attempts,
		coalesce(request_id::text, '') as requestid, requested_at as requested, coalesce(sent_at, $1) as sentat,
		coalesce(received_at, $1) as receivedat, coalesce(completed_at, $1) as completed, deadline,
		coalesce(assurance & $2 <> 0, false) as contradicted
		from (select `+columns+` from commands union all select `+columns+` from settled_commands) as c order by seq`,
		time.Time{}, contradicted)
	return rows, err
}

// unsettled counts the commands that are open, and those that are unknown.
func (w *watcher) unsettled(ctx context.Context) (open, unknown int, err error) {
	err = w.db.QueryRowContext(ctx, `select count(*) filter (where state in ('accepted', 'sent', 'received')),
		count(*) filter (where state = $1) from commands`, telematics.Unknown).Scan(&open, &unknown)
	return open, unknown, err
}

// reader reads what lists, the map and statuses show. It is safe for concurrent use.
type reader struct {
	*round
	shown runner.Log[audit.Shown]
}

// readEvery is the interval of reads: each is of one resource, in turns.
const readEvery = 250 * time.Millisecond

// readTurns are the resources, by their names in the interface; each status is of a few vehicles.
var readTurns = []func(*reader, context.Context, int, *rand.Rand){
	(*reader).readList, (*reader).readMap, (*reader).readUnits, (*reader).readStatuses,
}

// run reads at any instance until the context ends.
func (r *reader) run(ctx context.Context) {
	rng := rand.New(rand.NewPCG(r.Seed, 0x5ead))
	for n := 0; ctx.Err() == nil; n++ {
		readTurns[n%len(readTurns)](r, ctx, rng.IntN(r.Instances), rng)
		world.Pause(ctx, readEvery)
	}
}

// get returns what the answer, if one comes, decodes to, and when it was requested.
func (r *reader) get(ctx context.Context, instance int, path string, body any) (start time.Time, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	start = time.Now()
	status, _, err := world.Request{
		Method: http.MethodGet, URL: r.public[instance] + "/api/v1/admin/" + path, Token: r.admin,
	}.Do(ctx, cmp.Or(r.clients[1], world.Callers), body)
	return start, err == nil && status == http.StatusOK
}

func (r *reader) add(by string, start time.Time, s audit.Shown) {
	s.By, s.Start, s.End = by, start, time.Now()
	s.LastSeen, s.LocatedAt = s.LastSeen.Truncate(time.Second), s.LocatedAt.Truncate(time.Second)
	r.shown.Add(s)
}

// all returns what was shown, of which later answers may be older since commits were lost.
func (r *reader) all() []audit.Shown {
	return slices.DeleteFunc(r.shown.All(), func(s audit.Shown) bool { return !r.lostFrom.IsZero() && s.End.After(r.lostFrom) })
}

type connectivity struct {
	LastSeen time.Time `json:"last_seen"` // zero: null
}

type location struct {
	Timestamp time.Time `json:"timestamp"` // zero: null
}

// listed is a row of the list of vehicles, or of that of units.
type listed struct {
	ID           telematics.VehicleID `json:"id"`
	Vehicle      telematics.VehicleID `json:"vehicle_id"`
	Connectivity connectivity         `json:"connectivity"`
	Location     location             `json:"location"`
	Stored       bool                 `json:"state_stored"`
}

func (r *reader) readList(ctx context.Context, instance int, _ *rand.Rand) {
	r.readPages(ctx, instance, "vehicles", "the list", func(v listed) audit.Shown {
		return audit.Shown{Vehicle: v.ID, LastSeen: v.Connectivity.LastSeen, LocatedAt: v.Location.Timestamp, Stored: v.Stored}
	})
}

func (r *reader) readUnits(ctx context.Context, instance int, _ *rand.Rand) {
	r.readPages(ctx, instance, "units", "the list of units", func(u listed) audit.Shown {
		return audit.Shown{Vehicle: u.Vehicle, LastSeen: u.Connectivity.LastSeen, NoPosition: true, Stored: true}
	})
}

// readPages reads each page of a list, and what its rows show.
func (r *reader) readPages(ctx context.Context, instance int, path, by string, shown func(listed) audit.Shown) {
	for cursor := ""; ; {
		var page struct {
			Data []listed `json:"data"`
			Meta struct {
				Next *string `json:"next_cursor"`
			} `json:"meta"`
		}
		start, ok := r.get(ctx, instance, path+"?limit=200"+cursor, &page)
		if !ok {
			return
		}
		for _, row := range page.Data {
			r.add(by, start, shown(row))
		}
		if page.Meta.Next == nil {
			return
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Meta.Next)
	}
}

// readMap reads the map, whose rows are values in the order of its columns.
func (r *reader) readMap(ctx context.Context, instance int, _ *rand.Rand) {
	var body struct {
		Data struct {
			Columns  []string     `json:"columns"`
			Vehicles [][]*float64 `json:"vehicles"`
		} `json:"data"`
	}
	start, ok := r.get(ctx, instance, "fleet", &body)
	if !ok {
		return
	}
	column := func(row []*float64, name string) (at time.Time) {
		if n := slices.Index(body.Data.Columns, name); n >= 0 && row[n] != nil {
			at = time.Unix(int64(*row[n]), 0)
		}
		return at
	}
	for _, row := range body.Data.Vehicles {
		r.add("the map", start, audit.Shown{
			Vehicle: telematics.VehicleID(*row[0]), LastSeen: column(row, "last_seen"), LocatedAt: column(row, "located_at"), Stored: true,
		})
	}
}

// statuses is how many statuses are read in a turn.
const statuses = 10

func (r *reader) readStatuses(ctx context.Context, instance int, rng *rand.Rand) {
	for range statuses {
		car := rng.IntN(r.Vehicles) + 1
		var body struct {
			Data struct {
				Connectivity connectivity `json:"connectivity"`
				Location     location     `json:"location"`
			} `json:"data"`
			Meta struct {
				Stored bool `json:"state_stored"`
			} `json:"meta"`
		}
		if start, ok := r.get(ctx, instance, fmt.Sprintf("vehicles/%d/status", car), &body); ok {
			r.add("the status", start, audit.Shown{
				Vehicle: telematics.VehicleID(car), LastSeen: body.Data.Connectivity.LastSeen,
				LocatedAt: body.Data.Location.Timestamp, Stored: body.Meta.Stored,
			})
		}
	}
}
