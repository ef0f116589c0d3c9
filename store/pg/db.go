// Package pg is the connection to Postgres: pools, transactions, prepared statements, row sets
// and migrations. It uses no table of the other packages, except to maintain the schema.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package pg

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"golang.org/x/sync/singleflight"

	"motorpool/guard"
	"motorpool/store/groupcommit"
	"motorpool/store/unavailable"
)

// Config configures the connections to Postgres.
type Config struct {
	// postgres://user:password@host:port/database?sslmode=…; several servers as
	// host:port,host:port.
	URL string
	// Refuse a server that runs without fsync or full_page_writes. Defaults to no.
	Durable  bool
	MaxConns int           // Defaults to 20
	Timeout  time.Duration // of one statement. Defaults to 3 s
	MaxBatch int           // calls that share one statement. Defaults to 256
	// Line is how instances tell each other which primary is the newest. Defaults to none: then
	// this instance knows only what it has seen itself.
	Line   SharedLine
	Logger *slog.Logger // Defaults to silence
	Guard  *guard.Guard // recovers panics. Nil: they are only logged

	shared *shared
}

// shared is what the pools of an instance have in common.
type shared struct {
	lives   restarts
	lineage lineage
	hanging *hanging
	metrics *metrics
}

func (c Config) withDefaults() Config {
	c.MaxConns = cmp.Or(c.MaxConns, defaultConns)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.MaxBatch = cmp.Or(c.MaxBatch, defaultBatch)
	return c
}

// LogValue hides the password.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", unavailable.RedactURL(c.URL)), slog.Int("max_conns", c.MaxConns),
		slog.Duration("timeout", c.Timeout), slog.Int("max_batch", c.MaxBatch))
}

// DB holds the connections to Postgres. It is safe for concurrent use.
type DB struct {
	config Config
	Pool   *sqlx.DB // for single statements and transactions
	Lists  *sqlx.DB // for lists, so that many of them cannot delay commands and halts
	Health *sqlx.DB // for beats, the clock and readiness: what waits for locks cannot delay them

	Prepared *Statements // the prepared statements of commands and reports
	// Clients are prepared statements about clients and bookings, on few of the connections of
	// Prepared: what waits for their locks cannot delay commands.
	Clients *Statements

	lockers   chan struct{} // holds one for each running transaction of [WithinLocks]
	constants sync.Map      // settings that never change, by name

	suitable atomic.Bool // Suitable has found no pooler
	checking singleflight.Group

	findsHolder sync.Mutex // held by the one call that looks for the holder of a lock
}

// New assembles the pools. Connections are opened when they are used, so the server may be
// unavailable at the start. It returns an error only for an invalid address.
func New(config Config) (*DB, error) {
	config = config.withDefaults()
	hanging := newHanging(config.Guard)
	config.shared = &shared{hanging: hanging, metrics: newMetrics(hanging)}
	config.shared.lineage.shared, config.shared.lineage.log = config.Line, cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	config.shared.lineage.logged = map[string]time.Time{}
	hanging.stillThere = config.stillThere
	forLists, forCommands, forHealth := max(1, config.MaxConns/listShare), max(2, config.MaxConns/commandShare),
		max(1, config.MaxConns/healthShare)
	db := &DB{config: config}
	var commands *sqlx.DB
	for _, pool := range []struct {
		db       **sqlx.DB
		size     int
		settings map[string]string
	}{
		{&db.Pool, max(1, config.MaxConns-forLists-forCommands-forHealth), nil},
		{&db.Lists, forLists, nil},
		{&db.Health, forHealth, nil},
		{&commands, forCommands, byIndex},
	} {
		connector, err := config.connector(
			config.Timeout, config.Timeout/LockShare, patientDialer(config.Timeout+time.Second), pool.settings,
			&places{size: pool.size},
		)
		if err != nil {
			return nil, err
		}
		connector.planned = pool.db == &commands
		*pool.db = newPool(connector, pool.size)
	}
	db.lockers = make(chan struct{}, max(1, db.Pool.Stats().MaxOpenConnections/lockersShare))
	db.Prepared, db.Clients = NewStatements(commands, forCommands), NewStatements(commands, max(1, forCommands/clientShare))
	return db, nil
}

// Timeout returns the timeout of one statement, or of several that belong together.
func (p *DB) Timeout() time.Duration { return p.config.Timeout }

// MaxBatch returns the most calls that share one statement.
func (p *DB) MaxBatch() int { return p.config.MaxBatch }

// NewBatcher returns a batcher whose batches run on this database, within its limits.
// The error of one that was not granted a lock names the lock.
func NewBatcher[Req, Res any](p *DB, run func(context.Context, []Req) ([]Res, error)) *groupcommit.Batcher[Req, Res] {
	named := func(ctx context.Context, batch []Req) ([]Res, error) {
		results, err := run(ctx, batch)
		return results, p.nameLock(ctx, err)
	}
	return groupcommit.New(p.limits(), named)
}

// InParts runs a batch as a batcher does, and returns what is not done because Postgres refuses
// it, item by item; and what may be done later, with the error that says why.
func InParts[T any](p *DB, batch []T, run func([]T) error, refused func(T, error)) (left []T, err error) {
	groupcommit.InParts(batch, p.limits(), run, func(part []T, why error) {
		if len(part) == 1 && Splits(why) && !unavailable.IsCause(why) {
			refused(part[0], why)
			return
		}
		left, err = append(left, part...), cmp.Or(err, why)
	})
	return left, err
}

func (p *DB) limits() groupcommit.Limits {
	return groupcommit.Limits{MaxBatch: p.config.MaxBatch, Timeout: p.config.Timeout, Splits: Splits, Guard: p.config.Guard}
}

func newPool(connector driver.Connector, size int) *sqlx.DB {
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(idleConnTime)
	db.SetConnMaxLifetime(connLifetime)
	return db
}

// connector returns what opens connections with further settings. timeout bounds a statement and
// lockTimeout its wait for one lock; zero: no bound. places limit the connections; nil: no limit.
func (c Config) connector(
	timeout, lockTimeout time.Duration, dialer pq.Dialer, settings map[string]string, limit *places,
) (*sessions, error) {
	address, err := severalHosts(c.URL)
	if err != nil {
		return nil, unavailable.BadAddress("postgres", err)
	}
	config, err := pq.NewConfig(address)
	if err != nil {
		return nil, unavailable.BadAddress("postgres", err)
	}
	// FallbackApplicationName counts in a URL only.
	config.ApplicationName = cmp.Or(config.ApplicationName, "motorpool")
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, c.Timeout)
	if len(config.Multi) > 0 { // a standby takes no writes
		config.TargetSessionAttrs = cmp.Or(config.TargetSessionAttrs, pq.TargetSessionAttrsReadWrite)
	}
	// A commit is on disk, and on the synchronous standby where there is one, when it is
	// acknowledged [LAW-1]. A statement that has waited for a row goes on with it as it is then.
	session := map[string]string{"timezone": "UTC", "synchronous_commit": "on", "default_transaction_isolation": "read committed"}
	maps.Copy(session, settings)
	if timeout > 0 {
		milliseconds := strconv.FormatInt(timeout.Milliseconds(), 10)
		session["statement_timeout"] = milliseconds
		// An instance that froze inside a transaction must not hold its locks.
		session["idle_in_transaction_session_timeout"] = milliseconds
	}
	if lockTimeout > 0 {
		// One locked row must not delay the other rows of its batch.
		session["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
	}
	opens := &sessions{
		guard:    c.Guard,
		shuffled: config.LoadBalanceHosts == pq.LoadBalanceHostsRandom, settings: settingsStatement(session), durable: c.Durable,
		lives: &c.shared.lives, lineage: &c.shared.lineage, hanging: c.shared.hanging, metrics: c.shared.metrics, places: limit,
	}
	for _, host := range append([]pq.ConfigMultihost{{Host: config.Host, Hostaddr: config.Hostaddr, Port: config.Port}}, config.Multi...) {
		one := config.Clone()
		one.Multi, one.Host, one.Hostaddr, one.Port = nil, host.Host, host.Hostaddr, host.Port
		connector, err := pq.NewConnectorConfig(one)
		if err != nil {
			return nil, unavailable.BadAddress("postgres", err)
		}
		connector.Dialer(dialer)
		opens.servers = append(opens.servers, server{connector, net.JoinHostPort(host.Host, strconv.Itoa(int(host.Port)))})
	}
	return opens, nil
}

// WithoutTimeouts opens separate connections, on which a statement may run until the context
// ends, but wait only lockTimeout for one lock (zero: no bound). The caller closes them.
func (p *DB) WithoutTimeouts(ctx context.Context, lockTimeout time.Duration) (*sqlx.DB, error) {
	connector, err := p.config.connector(0, lockTimeout, mortalDialer(ctx), nil, nil)
	if err != nil {
		return nil, err
	}
	return sqlx.NewDb(sql.OpenDB(connector), "postgres"), nil
}

// Ping returns nil where Postgres replies.
func (p *DB) Ping(ctx context.Context) error {
	return unavailable.Wrap("ping postgres", p.Pool.PingContext(ctx))
}

// Connects returns why no connection for requests and commands can be opened; nil: each pool has
// one. It waits for none that is in use. Readiness has others, so it does not notice by itself that
// the server, or the role, has no more connections.
func Connects(ctx context.Context, p *DB) error {
	for _, pool := range []*sqlx.DB{p.Pool, p.Prepared.Pool} {
		if pool.Stats().OpenConnections > 0 {
			continue
		}
		if err := pool.PingContext(ctx); err != nil {
			return unavailable.Wrap("connect to postgres", err)
		}
	}
	return nil
}

// Close closes the connections. Calls in progress fail.
func (p *DB) Close() error {
	p.config.shared.hanging.close()
	return unavailable.Wrap("close postgres", errors.Join(p.Pool.Close(), p.Lists.Close(), p.Health.Close(), p.Prepared.Pool.Close()))
}

// resolution is that of timestamptz. Times are truncated before they are written: Postgres would
// round them, half of them into the future.
const resolution = time.Microsecond

// Timestamp returns a time as Postgres stores it, in UTC and in microseconds; the zero time is
// null.
func Timestamp(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(resolution)
	return &t
}

// FromTimestamp is the reverse of Timestamp.
func FromTimestamp(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// Interval returns a length of time as SQL text, for statements that compare with Postgres's own
// clock.
func Interval(d time.Duration) string {
	return fmt.Sprintf("interval '%d microseconds'", d.Microseconds())
}

// Metres returns the SQL of telematics.Position.Metres, between positions in degrees; null where a
// part of one is: least passes over a null.
func Metres(latitude, longitude, otherLatitude, otherLongitude string) string {
	return fmt.Sprintf(`case when num_nulls(%[1]s, %[2]s, %[3]s, %[4]s) = 0 then
		2 * 6371008.8 * asin(sqrt(least(1, sind((%[1]s - %[3]s) / 2) ^ 2 +
		cosd(%[3]s) * cosd(%[1]s) * sind((%[2]s - %[4]s) / 2) ^ 2))) end`, latitude, longitude, otherLatitude, otherLongitude)
}

// Nullable returns null for the zero value.
func Nullable[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// Deref returns the zero value for null.
func Deref[T any](v *T) T {
	if v == nil {
		return *new(T)
	}
	return *v
}

// JSON encodes a value that consists of strings, numbers and checked values only, such as rows as
// one parameter for json_to_recordset: its columns are matched by name, may be null and may be
// lists. It panics for others.
func JSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("pg: encode %T: %v", v, err))
	}
	return string(b)
}

// Searchable reports whether Postgres accepts texts from outside as parameters: it refuses zero
// bytes and invalid UTF-8. No row can match other texts.
func Searchable(texts ...string) bool {
	for _, s := range texts {
		if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
			return false
		}
	}
	return true
}
