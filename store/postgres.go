package store

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
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/telematics"
)

// Config says how to reach Postgres.
type Config struct {
	URL      string        // postgres://user:password@host:port/database?sslmode=…; several servers as host:port,host:port
	Durable  bool          // refuse a server that runs without fsync or full_page_writes. Defaults to no
	MaxConns int           // Defaults to 20
	Timeout  time.Duration // of one statement. Defaults to 3 s
	MaxBatch int           // calls that share one statement. Defaults to 256

	lives *lives
}

func (c Config) withDefaults() Config {
	c.MaxConns = cmp.Or(c.MaxConns, 20)
	c.Timeout = cmp.Or(c.Timeout, 3*time.Second)
	c.MaxBatch = cmp.Or(c.MaxBatch, 256)
	return c
}

// LogValue hides the password.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", redacted(c.URL)), slog.Int("max_conns", c.MaxConns),
		slog.Duration("timeout", c.Timeout), slog.Int("max_batch", c.MaxBatch))
}

// Postgres is the record of everything. It is safe for concurrent use.
type Postgres struct {
	config Config
	db     *sqlx.DB
	lists  *sqlx.DB // for lists: whoever asks for many of them must not hold up commands and halts

	commands *plans // what each command runs

	suitable atomic.Bool // was found to be

	claims      *group[*telematics.Command, claimed]
	settlements *group[*telematics.Settlement, *telematics.Command]
	lines       *group[telematics.Activity, struct{}]
	twins       *group[telematics.VehicleID, *vehicleRow]
	records     *group[telematics.VehicleID, *vehicleRow]
	unrecorded  *group[telematics.Unrecorded, telematics.UnrecordedFate]
}

// New assembles the record. It connects when something is asked of it, so that a
// server may be away at the start. An error says that the address makes no sense.
func New(config Config) (*Postgres, error) {
	config = config.withDefaults()
	config.lives = &lives{}
	connector, err := config.connector(config.Timeout, config.Timeout/lockShare, patientDialer(config.Timeout+time.Second), nil)
	if err != nil {
		return nil, err
	}
	planned, err := config.connector(config.Timeout, config.Timeout/lockShare, patientDialer(config.Timeout+time.Second), byIndex)
	if err != nil {
		return nil, err
	}
	forLists, forCommands := max(1, config.MaxConns/listShare), max(2, config.MaxConns/commandShare)
	p := &Postgres{
		config: config, db: pool(connector, max(1, config.MaxConns-forLists-forCommands)), lists: pool(connector, forLists),
		commands: newPlans(pool(planned, forCommands), forCommands),
	}
	p.claims = newGroup(config, p.claim)
	p.settlements = newGroup(config, p.settle)
	p.lines = newGroup(config, p.add)
	p.twins = newGroup(config, p.readTwins(selectVersionedTwins))
	p.records = newGroup(config, p.readTwins(selectRecords))
	p.unrecorded = newGroup(config, p.noteUnrecorded)
	return p, nil
}

// listShare is the part of the connections that lists may use.
const listShare = 4

// commandShare is the part that commands have, and what vehicles say: many of them share a statement.
const commandShare = 3

func pool(connector driver.Connector, size int) *sqlx.DB {
	db := sqlx.NewDb(sql.OpenDB(connector), "postgres")
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(30 * time.Minute)
	return db
}

// lockShare is the part of a statement's time that it may wait for one lock.
const lockShare = 6

// connector opens connections, with further settings, on which a statement may take so long, and wait so long for
// one lock; zero: as long as it needs.
func (c Config) connector(timeout, lockTimeout time.Duration, dialer pq.Dialer, settings map[string]string) (*sessions, error) {
	address, err := severalHosts(c.URL)
	if err != nil {
		return nil, badAddress("postgres", err)
	}
	config, err := pq.NewConfig(address)
	if err != nil {
		return nil, badAddress("postgres", err)
	}
	config.FallbackApplicationName = "motorpool"
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, c.Timeout)
	if len(config.Multi) > 0 { // a standby takes no writes
		config.TargetSessionAttrs = cmp.Or(config.TargetSessionAttrs, pq.TargetSessionAttrsReadWrite)
	}
	// A commit is on disk, and on the synchronous standby where there is one, when it is acknowledged [LAW-1].
	session := map[string]string{"timezone": "UTC", "synchronous_commit": "on"}
	maps.Copy(session, settings)
	if timeout > 0 {
		milliseconds := strconv.FormatInt(timeout.Milliseconds(), 10)
		session["statement_timeout"] = milliseconds
		// An instance that froze inside a transaction must not hold its locks.
		session["idle_in_transaction_session_timeout"] = milliseconds
	}
	if lockTimeout > 0 {
		// One vehicle's row that somebody holds must not hold up the others of its batch.
		session["lock_timeout"] = strconv.FormatInt(lockTimeout.Milliseconds(), 10)
	}
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, badAddress("postgres", err)
	}
	connector.Dialer(dialer)
	return newSessions(connector, session, c), nil
}

// unhurried opens connections of its own, on which a statement may take as long as it
// needs, until the context ends, but wait only so long for one lock (zero: as long as it
// needs). The caller closes them.
func (p *Postgres) unhurried(ctx context.Context, lockTimeout time.Duration) (*sqlx.DB, error) {
	connector, err := p.config.connector(0, lockTimeout, mortalDialer(ctx), nil)
	if err != nil {
		return nil, err
	}
	return sqlx.NewDb(sql.OpenDB(connector), "postgres"), nil
}

// badAddress leaves the address itself out: it holds a password.
func badAddress(server string, err error) error {
	if unreadable := (*url.Error)(nil); errors.As(err, &unreadable) {
		err = unreadable.Err
	}
	return fmt.Errorf("read the address of %s: %w", server, err)
}

// Ping returns nil where Postgres answers.
func (p *Postgres) Ping(ctx context.Context) error {
	return wrap("ping postgres", p.db.PingContext(ctx))
}

// Time returns what Postgres's clock says [LAW-11].
func (p *Postgres) Time(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := p.db.GetContext(ctx, &now, `select clock_timestamp()`)
	return now, wrap("read postgres's clock", err)
}

// Close closes the connections. Calls that are under way fail.
func (p *Postgres) Close() error {
	return wrap("close postgres", errors.Join(p.db.Close(), p.lists.Close(), p.commands.close()))
}

// resolution is that of timestamptz. Instants are cut before they are written:
// Postgres would round them, into the future half of the time.
const resolution = time.Microsecond

// written returns an instant as it is written down; the zero time is null.
func written(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(resolution)
	return &t
}

// read returns an instant that was written down.
func read(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// interval returns a length of time as SQL text, for statements that compare with Postgres's own clock.
func interval(d time.Duration) string {
	return fmt.Sprintf("interval '%d microseconds'", d.Microseconds())
}

// nullable returns null for the zero value.
func nullable[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

func value[T any](v *T) T {
	if v == nil {
		return *new(T)
	}
	return *v
}

// recordset returns rows as the one parameter that json_to_recordset spreads out:
// its columns go by name, may be null and may be lists.
func recordset(rows any) string { return asJSON(rows) }

// asJSON encodes what is built of strings, numbers and checked values only.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("store: encode %T: %v", v, err))
	}
	return string(b)
}

// searchable reports whether Postgres takes a text that came from outside. What it
// does not take is nowhere to be found.
func searchable(texts ...string) bool {
	for _, s := range texts {
		if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
			return false
		}
	}
	return true
}
