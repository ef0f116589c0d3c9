package pg

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/store/unavailable"
)

// Line is a history of the database: each promotion of a standby, and each restore to a moment,
// begins a new timeline of the system. The zero Line is none.
type Line struct {
	System   string // the system identifier of Postgres
	Timeline int64
}

func (l Line) String() string { return fmt.Sprintf("timeline %d of system %s", l.Timeline, l.System) }

// replaces reports whether a line ends another: what was written there since is not in this one.
func (l Line) replaces(other Line) bool {
	return other == Line{} || l.System == other.System && l.Timeline > other.Timeline
}

// ErrFormer means that a server accepts writes, but is not the installation's: a server with a
// newer history was seen, or one of another system. The error is marked as that of an unavailable
// server.
var ErrFormer = unavailable.Mark(errors.New("not the primary of this installation any more"))

func formerError(address string, found, newest Line) error {
	return fmt.Errorf(
		"postgres at %s: %w: it has %s, this installation has seen %s; see docs/backup.md#two-primaries", address,
		ErrFormer, found, newest,
	)
}

// SharedLine is the newest line that the instances of an installation have seen, as a signed text.
// Others can write there as well: it is believed only with the signature.
type SharedLine interface {
	// Swap stores a text where the expected one is stored, and returns what is stored then. No text
	// is the empty one, which is not stored.
	Swap(ctx context.Context, expected, text string) (string, error)
}

// secretSetting is the setting whose value signs the lines: the name of the shared group, which
// only Postgres and the broker know. A copy of the database has the same.
const secretSetting = "mqtt_shared_group"

// signed returns a line as a text with its HMAC by a secret; the zero Line is the empty text.
func (l Line) signed(secret string) string {
	if l == (Line{}) {
		return ""
	}
	text := fmt.Sprintf("%s %d", l.System, l.Timeline)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("motorpool line of postgres\n" + text))
	return text + " " + hex.EncodeToString(mac.Sum(nil))
}

// verified returns the line of a text, or the zero Line where its signature is not by the secret.
func verified(text, secret string) Line {
	system, rest, _ := strings.Cut(text, " ")
	number, _, _ := strings.Cut(rest, " ")
	timeline, err := strconv.ParseInt(number, 10, 64)
	line := Line{System: system, Timeline: timeline}
	if err != nil || !hmac.Equal([]byte(line.signed(secret)), []byte(text)) {
		return Line{}
	}
	return line
}

var errUnsigned = errors.New("it is not signed with the secret of this installation: another client writes to redis")

// lineage has the newest line that this instance knows of. It is safe for concurrent use.
type lineage struct {
	shared SharedLine // nil: none
	log    *slog.Logger

	newest atomic.Pointer[Line]   // another pointer is another line; nil: none is known
	secret atomic.Pointer[string] // nil: not read yet, so that no shared line is believed

	mu     sync.Mutex
	logged map[string]time.Time // by message
}

// learn returns the newest of the given line, this instance's and the shared one. While Redis is
// unavailable, this instance's counts.
func (l *lineage) learn(ctx context.Context, found Line) *Line {
	l.raise(found)
	if secret := l.secret.Load(); l.shared != nil && secret != nil {
		l.exchange(ctx, *secret)
	}
	return l.newest.Load()
}

// exchange adopts the shared line, or replaces one that is older, or one that is not signed with
// the secret.
func (l *lineage) exchange(ctx context.Context, secret string) {
	expected := ""
	for range swaps {
		known := l.known()
		text, err := l.shared.Swap(ctx, expected, known.signed(secret))
		if err != nil {
			return
		}
		shared := verified(text, secret)
		if text != "" && shared == (Line{}) {
			if l.isNew("shared line of postgres ignored", "redis") {
				l.log.Error("shared line of postgres ignored", "address", "redis", "err", errUnsigned)
			}
		}
		if known == (Line{}) || !known.replaces(shared) {
			l.adopt(shared)
			return
		}
		expected = text
	}
}

// swaps is more than two, since another instance may come between: the next call goes on.
const swaps = 3

// Signs gives the secret of the installation, with which shared lines are signed. Connections read
// it as well; it is for the first instance, which creates it.
func (p *DB) Signs(secret string) { p.config.shared.lineage.secret.Store(&secret) }

// known returns the newest line, or the zero Line.
func (l *lineage) known() Line {
	if newest := l.newest.Load(); newest != nil {
		return *newest
	}
	return Line{}
}

func (l *lineage) raise(found Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found != (Line{}) && found.replaces(l.known()) {
		l.newest.Store(&found)
	}
}

// adopt takes over the shared line, by which another instance may have come first.
func (l *lineage) adopt(shared Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known(); shared != (Line{}) && shared != known && !known.replaces(shared) {
		l.newest.Store(&shared)
	}
}

// isNew reports whether a message about a server was not logged within the last minute.
func (l *lineage) isNew(message, address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	again := time.Since(l.logged[message+address]) >= logAgainAfter
	if again {
		l.logged[message+address] = time.Now()
	}
	return again
}

// connectNewest connects to the first server that has the newest known line, or a newer one. Where
// none is known yet, it compares all servers of the address.
func (s *sessions) connectNewest(ctx context.Context) (*session, error) {
	newest := s.lineage.newest.Load()
	var best *session
	var errs []error
	for _, server := range s.order() {
		conn, err := s.open(ctx, server)
		if err == nil && newest == nil && best == nil { // the secret is known from the first server
			newest = s.lineage.learn(ctx, Line{})
		}
		if err == nil && conn.line != nil && newest != nil {
			err = conn.joinOrClose(ctx)
		}
		switch {
		case err != nil:
			errs = append(errs, err)
		case conn.line == nil || newest != nil:
			return conn, nil
		case best == nil:
			best = conn
		case conn.line.replaces(*best.line):
			_ = best.driverConn.Close() // it is idle
			best = conn
		default:
			_ = conn.driverConn.Close()
		}
	}
	if best != nil {
		if err := best.joinOrClose(ctx); err != nil {
			errs = append(errs, err)
		} else {
			return best, nil
		}
	}
	return nil, errors.Join(errs...)
}

// order returns the servers in the order in which they are tried.
func (s *sessions) order() []server {
	if !s.shuffled {
		return s.servers
	}
	servers := make([]server, len(s.servers))
	for to, from := range rand.Perm(len(servers)) {
		servers[to] = s.servers[from]
	}
	return servers
}

// join makes the line of a connection the newest, or returns ErrFormer where it is not. A server
// that is not ours is marked, for instances that come later.
func (c *session) join(ctx context.Context) error {
	newest := c.pool.lineage.newest.Load()
	if newest == nil || *c.line != *newest {
		newest = c.pool.lineage.learn(ctx, *c.line)
	}
	if *c.line == *newest {
		c.line = newest
		return nil
	}
	err := formerError(c.address, *c.line, *newest)
	if c.pool.lineage.isNew("postgres connection refused: not the primary any more", c.address) {
		c.pool.lineage.log.Error("postgres connection refused: not the primary any more", "address", c.address, "err", err)
	}
	if newest.replaces(*c.line) {
		c.line = nil // for the statement that marks it
		c.mark(ctx, *newest)
	}
	return err
}

func (c *session) joinOrClose(ctx context.Context) error {
	err := c.join(ctx)
	if err != nil {
		_ = c.driverConn.Close() // the error says more
	}
	return err
}

// lineOf reads the line of a primary. A standby has none that counts: it takes no writes.
const lineOf = `select case when pg_is_in_recovery() then '' else (select system_identifier::text from pg_control_system()) end,
	case when pg_is_in_recovery() then '' else left(pg_walfile_name(pg_current_wal_lsn()), 8) end`

// identify reads the line of the server. Where its role or its kind does not allow that, the line
// stays unknown, and the server is not compared with others.
func (c *session) identify(ctx context.Context) error {
	found, err := c.row(ctx, lineOf)
	if refusal := pq.As(err); refusal != nil && isForbidden(refusal) {
		if c.pool.lineage.isNew("timeline of postgres not readable: a former primary would not be recognised", c.address) {
			c.pool.lineage.log.Error(
				"timeline of postgres not readable: a former primary would not be recognised", "address", c.address,
				"err", err,
			)
		}
		return nil
	}
	if err != nil || found[0] == "" {
		return err
	}
	timeline, err := strconv.ParseInt(found[1], 16, 64)
	if err != nil {
		return fmt.Errorf("read the timeline: %w", err)
	}
	line := Line{System: found[0], Timeline: timeline}
	stored, err := c.row(ctx, fmt.Sprintf(`select coalesce(max(split_part(name, ' ', 3)) filter (where name like '%[1]s %[2]s %%'), '0'),
		coalesce(max(value) filter (where name = '%[3]s'), '') from settings where name like '%[1]s %[2]s %%'
		or name = '%[3]s'`, formerMark, line.System, secretSetting))
	if refusal := pq.As(err); refusal != nil && (isForbidden(refusal) || refusal.Code == undefinedTable) {
		stored, err = []string{"0", ""}, nil // there is no schema yet
	}
	if err != nil {
		return err
	}
	if marked, err := strconv.ParseInt(stored[0], 10, 64); err == nil && marked > timeline {
		c.pool.lineage.raise(Line{System: line.System, Timeline: marked})
	}
	if secret := stored[1]; secret != "" {
		c.pool.lineage.secret.CompareAndSwap(nil, &secret) // another server does not change it
	}
	c.line = &line
	return nil
}

// formerMark begins the names of settings that a former primary has: the newest timeline that was
// seen elsewhere. The number has a fixed length, so that text sorts as numbers do.
const formerMark = "postgres_timeline"

// mark tells a server which newer line was seen, where it still takes writes. It commits without a
// standby, which may follow the newer primary.
func (c *session) mark(ctx context.Context, newest Line) {
	_, err := c.ExecContext(ctx, fmt.Sprintf(`
		begin; set local synchronous_commit = local;
		insert into settings (name, value) values ('%s %s %010d', 'seen elsewhere') on conflict (name) do nothing;
		commit`, formerMark, newest.System, newest.Timeline), nil)
	if err != nil {
		c.pool.lineage.log.Debug("former primary not marked", "address", c.address, "err", err)
	}
}

const (
	undefinedFunction = "42883"
	undefinedTable    = "42P01"
	notSupported      = "0A000"
)

func isForbidden(refusal *pq.Error) bool {
	return refusal.Code == unavailable.MissingRight || refusal.Code == undefinedFunction || refusal.Code == notSupported
}

// Watch keeps the newest line up to date with those of the other instances, and looks for servers
// of the address that accept writes and are not ours, until the context ends.
func (p *DB) Watch(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error {
		return p.config.Guard.Keep(ctx, "learn the newest primary", func(ctx context.Context) error {
			return each(ctx, lineEvery, func() { p.config.shared.lineage.learn(ctx, Line{}) })
		})
	})
	group.Go(func() error {
		return p.config.Guard.Keep(ctx, "survey servers", func(ctx context.Context) error {
			return each(ctx, surveyEvery, func() { p.survey(ctx) })
		})
	})
	return group.Wait()
}

func each(ctx context.Context, interval time.Duration, do func()) error {
	for {
		if do(); !guard.Pause(ctx, interval) {
			return nil
		}
	}
}

// survey connects once to each server of the address, also to those that no connection needs. A
// primary with a newer line than ours becomes ours; former ones are counted.
func (p *DB) survey(ctx context.Context) {
	connector, err := p.config.connector(p.config.Timeout, p.config.Timeout/LockShare, patientDialer(p.config.Timeout), nil, nil)
	if err != nil {
		return // New has returned the same error
	}
	var primaries []*session
	for _, server := range connector.servers {
		conn, err := connector.open(ctx, server)
		if err != nil {
			continue // it is unavailable, or a standby
		}
		defer conn.Close()
		if conn.line == nil {
			continue
		}
		primaries = append(primaries, conn)
		connector.lineage.learn(ctx, *conn.line)
	}
	former := 0
	for _, conn := range primaries { // once the newest is known
		if errors.Is(conn.join(ctx), ErrFormer) {
			former++
		}
	}
	p.config.shared.metrics.formerPrimaries.Set(float64(former))
}
