package pg

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/guard"
	"motorpool/store/unavailable"
)

// ErrUnsuitable means that the service must not use this Postgres, or the pooler in front of it. A
// retry does not help.
var ErrUnsuitable = errors.New("this Postgres cannot be used")

// sessions opens connections with separate settings. It refuses a server that may lose what it has
// committed, and one that is not this installation's any more.
//
// The settings are set by a statement, not as startup parameters: a pooler would refuse those, or
// silently ignore them. Both override the settings of the role and the database.
type sessions struct {
	servers  []server
	guard    *guard.Guard
	shuffled bool   // the servers are tried in random order
	settings string // a statement
	durable  bool   // refuse a server without fsync or full_page_writes
	planned  bool   // statements outside of transactions are parsed once, too
	lives    *restarts
	lineage  *lineage
	hanging  *hanging
	metrics  *metrics
	places   *places // nil: no limit
}

// server is one of the servers that an address names.
type server struct {
	*pq.Connector
	address string // host:port
}

// backend is a process of Postgres that serves a connection.
type backend struct {
	pid     string
	started string // start time of its server
}

// restarts counts restarts and failovers of the server, by the start times that new connections
// find. It is safe for concurrent use.
type restarts struct {
	mu      sync.Mutex
	started string // start time of the server of the latest connection
	count   atomic.Int64
}

func (l *restarts) met(started string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if started != l.started {
		l.started = started
		l.count.Add(1)
	}
}

// Lives returns a number that grows when a new connection finds that Postgres has restarted or
// failed over, so that it may have lost acknowledged commits. It sends no query.
func (p *DB) Lives() int64 { return p.config.shared.lives.count.Load() }

// settingsStatement returns the statement of the settings, which contain no text from outside.
func settingsStatement(settings map[string]string) string {
	var columns []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		columns = append(columns, fmt.Sprintf("set_config('%s', '%s', false)", name, settings[name]))
	}
	columns = append(columns, "pg_backend_pid()::text", "pg_postmaster_start_time()::text", unsafeSettings)
	return "select " + strings.Join(columns, ", ")
}

// unsafeSettings lists the settings with which the server may lose commits, or a whole table, at a
// power failure; empty: none.
const unsafeSettings = `(select coalesce(string_agg(name || '=off', ', ' order by name), '') from (
	values ('fsync', current_setting('fsync')), ('full_page_writes', current_setting('full_page_writes'))) as s (name,
	value) where value = 'off')`

// Driver returns the driver.
func (s *sessions) Driver() driver.Driver { return s.servers[0].Driver() }

// Connect opens a connection to the server with the newest history.
func (s *sessions) Connect(ctx context.Context) (driver.Conn, error) {
	if err := s.places.take(); err != nil {
		return nil, err
	}
	var conn *session // the library's goroutine opens connections, too
	err := s.guard.Try("connect to postgres", func() (err error) {
		conn, err = s.connectNewest(ctx)
		return err
	})
	if err != nil {
		s.places.release()
		return nil, err
	}
	s.lives.met(conn.backend.started)
	return conn, nil
}

// open connects to a server, and reads which one it is.
func (s *sessions) open(ctx context.Context, to server) (*session, error) {
	opened, err := to.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := s.newSession(opened.(driverConn), to.address)
	if err := conn.setUp(ctx); err != nil {
		_ = conn.driverConn.Close() // the error says more
		return nil, fmt.Errorf("set up the connection: %w", err)
	}
	return conn, nil
}

// setUp applies the settings, checks those of the server, and reads its history.
func (c *session) setUp(ctx context.Context) error {
	row, err := c.row(ctx, c.pool.settings)
	if err != nil {
		return err
	}
	found := row[len(row)-3:]
	c.backend = backend{pid: found[0], started: found[1]}
	if unsafe := found[2]; c.pool.durable && unsafe != "" {
		return unsuitableError(
			"it runs with " + unsafe + ", so a crash loses commands that were executed; --allow-unsafe-postgres for a development server",
		)
	}
	return c.identify(ctx)
}

// row returns the only row of a query, as text.
func (c *session) row(ctx context.Context, query string) ([]string, error) {
	rows, err := c.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprintf("%s", v) // bytes or a string
	}
	return texts, rows.Close()
}

func unsuitableError(why string) error { return fmt.Errorf("%w: %s", ErrUnsuitable, why) }

// Suitable returns an ErrUnsuitable where a connection does not keep its session from one statement
// to the next: with a pooler in transaction or statement mode, settings, locks and prepared
// statements end up in the sessions of others. It opens two separate connections, and checks that
// the mark that the first sets stays with it while the second is used. Concurrent callers share one
// check, and a server that was suitable is not checked again.
func (p *DB) Suitable(ctx context.Context) error {
	if p.suitable.Load() {
		return nil
	}
	// A caller whose context ends must not end the check for the others.
	checked := p.checking.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), suitableWithin)
		defer cancel()
		return nil, p.checkSuitable(ctx)
	})
	select {
	case <-ctx.Done():
		return unavailable.Wrap("check the connection to postgres", ctx.Err())
	case result := <-checked:
		return result.Err
	}
}

func (p *DB) checkSuitable(ctx context.Context) error {
	db, err := p.WithoutTimeouts(ctx, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	first, err := db.Connx(ctx)
	if err != nil {
		return unavailable.Wrap("check the connection to postgres", err)
	}
	defer first.Close()
	second, err := db.Connx(ctx)
	if err != nil {
		return unavailable.Wrap("check the connection to postgres", err)
	}
	defer second.Close()
	for range poolingRounds {
		shared, err := sharesSessions(ctx, first, second)
		if err != nil {
			return unavailable.Wrap("check the connection to postgres", err)
		}
		if shared {
			return unsuitableError(
				"a pooler in transaction or statement mode is before it, such as PgBouncer with pool_mode=transaction; " +
					"connect directly, or with pool_mode=session",
			)
		}
	}
	p.suitable.Store(true)
	return nil
}

// suitableWithin bounds the check.
const suitableWithin = 10 * time.Second

// poolingRounds is more than one, since other clients of a pooler may take its connections between
// our statements.
const poolingRounds = 3

// mark is a setting that only its session sees.
type mark struct {
	Backend int64  `db:"pid"`
	Value   string `db:"value"`
}

// sharesSessions reports whether the first of two connections changes its session, or both have the
// same.
func sharesSessions(ctx context.Context, first, second *sqlx.Conn) (bool, error) {
	const read = `select pg_backend_pid() as pid, coalesce(current_setting('motorpool.mark', true), '') as value`
	token := rand.Text() // letters and digits: parameters would need a prepared statement
	steps := []struct {
		conn  *sqlx.Conn
		query string
		found mark
	}{
		{conn: first, query: `select pg_backend_pid() as pid, set_config('motorpool.mark', '` + token + `', false) as value`},
		{conn: first, query: read},
		{conn: second, query: read}, // the pooler gives it the session that the first had last
		{conn: first, query: read},
	}
	for i := range steps {
		if err := steps[i].conn.GetContext(ctx, &steps[i].found, steps[i].query); err != nil {
			return false, err
		}
	}
	mine := steps[0].found
	return steps[1].found != mine || steps[3].found != mine || steps[2].found.Backend == mine.Backend || steps[2].found.Value == token, nil
}

// Unsafe returns the settings by which the server may lose what it has committed; empty: none.
func (p *DB) Unsafe(ctx context.Context) (settings string, err error) {
	err = p.Pool.GetContext(ctx, &settings, `select `+unsafeSettings)
	return settings, unavailable.Wrap("read settings of postgres", err)
}

// Standbys counts the servers that replicate this one.
type Standbys struct {
	// A failover to one of these loses what it does not have yet.
	Asynchronous int `db:"asynchronous"`
	// Standbys whose kind the database's role may not see: grant it pg_read_all_stats.
	Hidden      int  `db:"hidden"`
	Synchronous bool `db:"synchronous"` // commits wait for a standby
}

// Standbys counts the standbys that are connected now.
func (p *DB) Standbys(ctx context.Context) (Standbys, error) {
	var s Standbys
	err := p.Pool.GetContext(ctx, &s, `
		select count(*) filter (where sync_state = 'async' and backup is not true) as asynchronous,
			count(*) filter (where sync_state is null) as hidden,
			current_setting('synchronous_standby_names') <> '' as synchronous
		from (select sync_state, state = 'backup' as backup from pg_stat_replication) as r`)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return s, unavailable.Wrap("ask for the standbys of postgres", err)
}
