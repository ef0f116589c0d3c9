package pg_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// pair is a primary with a standby. Both have the database of the schema.
type pair struct {
	*testing.T
	primary storetest.Postgres
	standby *devstack.Postgres
	admin   *sqlx.DB // of the primary
}

func startPair(t *testing.T, synchronous bool) *pair {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	p := &pair{T: t, primary: storetest.StartPostgres(t, false)}
	var err error
	p.standby, err = p.primary.StartStandby(
		t.Context(), devstack.StandbyConfig{Dir: filepath.Join(p.primary.Dir, "standby"), Synchronous: synchronous},
	)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.standby.Discard() })
	p.admin = sqlx.MustConnect("postgres", p.primary.Database(storetest.Template))
	t.Cleanup(func() { _ = p.admin.Close() })
	return p
}

func (p *pair) must(err error) {
	p.Helper()
	require.NoError(p, err)
}

// eventually waits until a condition holds.
func (p *pair) eventually(what string, holds func() bool) {
	p.Helper()
	for end := time.Now().Add(storetest.Patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			require.Late(p, "not in time: %s", what)
		}
	}
}

// awaiting returns the backends that wait for the standby.
func (p *pair) awaiting() (pids []int) {
	p.Helper()
	p.must(p.admin.Select(&pids, `select pid from pg_stat_activity where wait_event = 'SyncRep'`))
	return pids
}

// goOnAlone has commits of the primary wait for no standby any more.
func (p *pair) goOnAlone() {
	p.Helper()
	p.admin.MustExec(`alter system set synchronous_standby_names = ''`)
	p.admin.MustExec(`select pg_reload_conf()`)
}

func TestPrimary_ACommitThatOnlyThePrimaryHasFails(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	p.admin.MustExec(`create table numbers (n int); grant all on numbers to public`)
	db := storetest.Open(t, p.primary.Database(storetest.Template))
	const insert = `insert into numbers values ($1)`
	var n int
	ways := map[string]func(context.Context) error{
		"a statement": func(ctx context.Context) error {
			_, err := db.Pool.ExecContext(ctx, insert, 1)
			return err
		},
		"a statement without parameters": func(ctx context.Context) error {
			_, err := db.Pool.ExecContext(ctx, `insert into numbers values (1)`)
			return err
		},
		"a row": func(ctx context.Context) error { return db.Pool.GetContext(ctx, &n, insert+` returning n`, 1) },
		"rows":  func(ctx context.Context) error { return db.Pool.SelectContext(ctx, &[]int{}, insert+` returning n`, 1) },
		"scan": func(ctx context.Context) error {
			return db.Pool.QueryRowContext(ctx, insert+` returning n`, 1).Scan(&n)
		},
		"commit": func(ctx context.Context) error { return db.Exec(ctx, insert, 1) },
		"a prepared statement": func(ctx context.Context) error {
			_, err := db.Prepared.ExecContext(ctx, insert, 1)
			return err
		},
		"rows of a prepared statement": func(ctx context.Context) error {
			return pg.Each(ctx, db.Prepared, []any{&n}, func() error { return nil }, insert+` returning n`, 1)
		},
		"a transaction of prepared statements": func(ctx context.Context) error {
			return db.Prepared.Within(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
				_, err := tx.ExecContext(ctx, insert, 1)
				return err
			})
		},
	}
	for name, write := range ways {
		require.NoError(t, write(t.Context()), "%s, with the standby", name)
	}
	p.must(p.standby.Kill())
	for name, write := range ways {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() { done <- write(t.Context()) }()
			p.eventually("the commit waits", func() bool { return len(p.awaiting()) == 1 })
			storetest.Exec(t, p.admin, `select pg_cancel_backend($1)`, p.awaiting()[0])
			if err := <-done; !errors.Is(err, pg.ErrNotReplicated) || !unavailable.Is(err) {
				t.Errorf("%v, want ErrNotReplicated", err)
			}
			assert.NoError(t, db.Ping(t.Context()), "the next statement")
		})
	}
	t.Run("the end of a context does not cancel the wait", func(t *testing.T) { p.waitsOn(db) })
}

// waitsOn ends the context of a commit that waits for the standby. It goes on to wait.
func (p *pair) waitsOn(db *pg.DB) {
	t := p.T
	visible := func() (n int) {
		p.must(p.admin.Get(&n, `select count(*) from numbers`))
		return n
	}
	before := visible()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := db.Pool.ExecContext(ctx, `insert into numbers values ($1)`, 1)
		done <- err
	}()
	p.eventually("the commit waits", func() bool { return len(p.awaiting()) == 1 })
	cancel()
	select {
	case err := <-done:
		t.Errorf("the statement ended with its context: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	if n := visible() - before; n != 0 || len(p.awaiting()) != 1 {
		t.Errorf("%d rows are visible, and %d commits wait, before any standby has the row", n, len(p.awaiting()))
	}
	p.goOnAlone()
	p.eventually("the row is there", func() bool { return visible() == before+1 })
}

// A commit that waits for the standby does not notice that its client has left.
func TestPrimary_StatementsThatHangCountAgainstTheLimitOfConnections(t *testing.T) {
	t.Parallel()
	p := startPair(t, true)
	p.admin.MustExec(`create table numbers (n int); grant all on numbers to public`)
	const limit = 8
	db := storetest.OpenWith(t, pg.Config{URL: p.primary.Database(storetest.Template), MaxConns: limit, Timeout: 200 * time.Millisecond})
	const insert = `insert into numbers values ($1)`
	// A busy machine may take longer than the timeout.
	writes := func() bool { return db.Exec(t.Context(), insert, 0) == nil }
	p.eventually("a write", writes)
	p.must(p.standby.Kill())

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var callers sync.WaitGroup
	for range 2 * limit {
		callers.Go(func() {
			for ctx.Err() == nil {
				if err := db.Exec(ctx, insert, 1); err == nil {
					t.Error("a commit was confirmed without the standby")
				} else if !unavailable.Is(unavailable.Wrap("write", err)) && ctx.Err() == nil {
					t.Errorf("%v, want an error of an unavailable server", err)
				}
				_, _ = db.Prepared.ExecContext(ctx, insert, 2)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	// Four times as long as the instance waits for a reply.
	most := 0
	for end := time.Now().Add(4800 * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		most = max(most, len(p.awaiting()))
	}
	if most > limit || most == 0 {
		t.Errorf("%d backends waited concurrently, want no more than the instance's %d connections", most, limit)
	}
	p.eventually("each backend that waits is counted", func() bool { n := len(p.awaiting()); return n > 0 && db.Hanging() == n })
	cancel()
	callers.Wait()
	if err := db.Exec(t.Context(), insert, 1); !unavailable.Is(err) || !strings.Contains(err.Error(), "still wait in postgres") {
		t.Errorf("%v, want the reason", err)
	}
	p.eventually("lists are read", func() bool { n := 0; return db.Lists.Get(&n, `select count(*) from numbers`) == nil })
	p.goOnAlone()
	p.eventually("no statement hangs", func() bool { return db.Hanging() == 0 })
	p.eventually("a write after the standby is back", writes)
}

// sharedLine is what instances share, in memory.
type sharedLine struct {
	sync.Mutex
	text string
}

func (l *sharedLine) Swap(_ context.Context, expected, text string) (string, error) {
	l.Lock()
	defer l.Unlock()
	if l.text == expected && text != "" {
		l.text = text
	}
	return l.text, nil
}

// signedLine returns a line as an instance of the installation of a database shares it.
func signedLine(t *testing.T, db *pg.DB, system string, timeline int) string {
	t.Helper()
	secret, err := settings.SharedGroup(t.Context(), db)
	require.NoError(t, err)
	text := fmt.Sprintf("%s %d", system, timeline)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("motorpool line of postgres\n" + text))
	return fmt.Sprintf("%s %x", text, mac.Sum(nil))
}

// systemOf returns the system of the server, and creates the secret of the installation.
func systemOf(t *testing.T, db *pg.DB) (system string) {
	t.Helper()
	_, err := settings.SharedGroup(t.Context(), db)
	require.NoError(t, err)
	require.NoError(t, db.Pool.Get(&system, `select system_identifier::text from pg_control_system()`))
	return system
}

// shareSecret creates the secret of the installation at both servers.
func (p *pair) shareSecret() {
	p.Helper()
	systemOf(p.T, storetest.Open(p.T, p.primary.Database(storetest.Template)))
	p.must(p.standby.InSync(p.Context(), p.primary.Postgres))
}

// address returns that of several servers.
func (p *pair) address(servers ...*devstack.Postgres) string {
	p.Helper()
	var hosts []string
	var user *url.Userinfo
	for _, server := range servers {
		u, err := url.Parse(server.URL())
		p.must(err)
		hosts, user = append(hosts, u.Host), u.User
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, strings.Join(hosts, ","), storetest.Template)
}

// port returns that of the server which a statement reaches.
func (p *pair) port(db *pg.DB) (port string) {
	p.Helper()
	p.must(db.Pool.Get(&port, `select current_setting('port')`))
	return port
}

func portOf(t *testing.T, server *devstack.Postgres) string {
	t.Helper()
	u, err := url.Parse(server.URL())
	require.NoError(t, err)
	return u.Port()
}

func TestTwoPrimaries_OnlyTheNewerIsWrittenTo(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	former, promoted := p.primary.Postgres, p.standby
	p.shareSecret()
	var shared sharedLine
	open := func(shared pg.SharedLine, servers ...*devstack.Postgres) *pg.DB {
		return storetest.OpenWith(t, pg.Config{URL: p.address(servers...), Line: shared, Timeout: 5 * time.Second})
	}
	// Each has connections to the first primary.
	both, alone, unshared := open(&shared, former, promoted), open(&shared, former), open(nil, former)
	for _, db := range []*pg.DB{both, alone, unshared} {
		if port := p.port(db); port != portOf(t, former) {
			t.Fatalf("connected to %s before the failover", port)
		}
	}
	p.must(promoted.Promote(t.Context()))

	if port := p.port(open(nil, former, promoted)); port != portOf(t, promoted) {
		t.Error("an instance that knows of nothing has chosen the former primary")
	}
	if port := p.port(open(&shared, promoted, former)); port != portOf(t, promoted) {
		t.Error("the promoted standby was refused")
	}
	watching, stop := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	for _, db := range []*pg.DB{both, alone} {
		watches.Go(func() { _ = db.Watch(watching) })
	}
	p.eventually("pooled connections to the former primary end", func() bool {
		var port string
		err := both.Pool.Get(&port, `select current_setting('port')`)
		if err != nil && !errors.Is(err, pg.ErrFormer) {
			t.Fatal(err)
		}
		return port == portOf(t, promoted)
	})
	var err error
	p.eventually("the former primary is refused", func() bool {
		err = alone.Ping(t.Context())
		return err != nil
	})
	for _, want := range []string{"127.0.0.1:" + portOf(t, former), "timeline 1", "timeline 2"} {
		if !errors.Is(err, pg.ErrFormer) || !unavailable.Is(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want ErrFormer with %q", err, want)
		}
	}
	// The refusal has marked it.
	if err := open(nil, former).Ping(t.Context()); !errors.Is(err, pg.ErrFormer) {
		t.Errorf("an instance without Redis, at the former primary: %v, want ErrFormer", err)
	}
	var marks int
	p.must(p.admin.Get(&marks, `select count(*) from settings where name like 'postgres_timeline %'`))
	if marks != 1 {
		t.Errorf("the former primary has %d marks, want one", marks)
	}
}

// A transaction that is open while the newer primary is seen is not confirmed.
func TestTwoPrimaries_ACommitAtTheFormerFails(t *testing.T) {
	t.Parallel()
	p := startPair(t, false)
	p.shareSecret()
	var shared sharedLine
	db := storetest.OpenWith(t, pg.Config{URL: p.address(p.primary.Postgres), Line: &shared})
	other := storetest.OpenWith(t, pg.Config{URL: p.address(p.standby), Line: &shared})
	err := db.Within(t.Context(), func(tx *sqlx.Tx) error {
		if _, err := tx.Exec(`insert into settings (name, value) values ('a', 'b')`); err != nil {
			return err
		}
		p.must(p.standby.Promote(t.Context()))
		p.port(other)
		watching, stop := context.WithCancel(t.Context())
		stop() // one pass
		return db.Watch(watching)
	})
	if !errors.Is(err, pg.ErrFormer) {
		t.Errorf("%v, want ErrFormer", err)
	}
}

func TestPrimary_AnotherSystemIsRefused(t *testing.T) {
	t.Parallel()
	address, other := storetest.NewDatabase(t), "7000000000000000001"
	shared := sharedLine{text: signedLine(t, storetest.Open(t, address), other, 1)}
	db := storetest.OpenWith(t, pg.Config{URL: address, Line: &shared})
	if err := db.Ping(t.Context()); !errors.Is(err, pg.ErrFormer) || !strings.Contains(err.Error(), other) {
		t.Errorf("%v, want ErrFormer", err)
	}
}

// Who can write to Redis cannot take the primary from the installation.
func TestPrimary_ASharedLineIsBelievedOnlyWithTheSecretOfTheInstallation(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	first := storetest.Open(t, address)
	system := systemOf(t, first)
	mine := signedLine(t, first, system, 1)
	_, mac, _ := strings.Cut(strings.TrimPrefix(mine, system+" "), " ")
	elsewhere := storetest.Open(t, storetest.NewDatabase(t))
	for name, forged := range map[string]string{
		"no signature":                  system + " 999",
		"an empty signature":            system + " 999 ",
		"the signature of another line": system + " 999 " + mac,
		"the secret of another":         signedLine(t, elsewhere, system, 999),
		"another system":                "7000000000000000001 1 " + mac,
		"no number":                     system + " x " + mac,
		"no line":                       "x",
	} {
		t.Run(name, func(t *testing.T) {
			// Both that of an instance which runs already, and of one that starts.
			var shared sharedLine
			var log strings.Builder
			config := pg.Config{URL: address, Line: &shared, Logger: slog.New(slog.NewTextHandler(&log, nil))}
			running := storetest.OpenWith(t, config)
			if err := running.Ping(t.Context()); err != nil || shared.text != mine {
				t.Fatalf("%v; shared is %q, want %q", err, shared.text, mine)
			}
			watching, stop := context.WithCancel(t.Context())
			stop() // one pass
			for range 3 {
				shared.text = forged
				require.NoError(t, running.Watch(watching))
				if err := running.Exec(t.Context(), `insert into settings (name, value) values ('a', 'b')
					on conflict do nothing`); err != nil {
					t.Errorf("an instance that runs: %v", err)
				}
			}
			if shared.text != mine {
				t.Errorf("shared is %q afterwards, want %q", shared.text, mine)
			}
			if n := strings.Count(log.String(), "shared line of postgres ignored"); n != 1 {
				t.Errorf("logged %d times, want once: %s", n, &log)
			}
			shared.text = forged
			assert.NoError(t, storetest.OpenWith(t, config).Ping(t.Context()), "an instance that starts")
			var marks int
			if err := first.Pool.Get(&marks, `select count(*) from settings where name like 'postgres_timeline %'`); err != nil ||
				marks != 0 {
				t.Errorf("the primary has %d marks, want none; %v", marks, err)
			}
		})
	}
}

// Before the secret is there, the first instance neither believes nor shares a line; then it does.
func TestPrimary_ASharedLineIsNotBelievedBeforeThereIsASecret(t *testing.T) {
	t.Parallel()
	shared := sharedLine{text: "7000000000000000001 1"}
	db := storetest.OpenWith(t, pg.Config{URL: storetest.NewDatabase(t), Line: &shared})
	if err := db.Ping(t.Context()); err != nil || shared.text != "7000000000000000001 1" {
		t.Fatalf("%v; shared is %q", err, shared.text)
	}
	want := signedLine(t, db, systemOf(t, db), 1)
	watching, stop := context.WithCancel(t.Context())
	stop() // one pass
	if err := db.Watch(watching); err != nil || shared.text != want {
		t.Errorf("%v; shared is %q, want %q", err, shared.text, want)
	}
}

// The service's role owns nothing.
func TestPrimary_APlainRoleSeesTheTimeline(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	system := systemOf(t, storetest.Open(t, address))
	for _, address := range []string{address, storetest.NewEmptyDatabase(t)} {
		owner := sqlx.MustConnect("postgres", address)
		defer owner.Close()
		role := "plain_" + strings.TrimPrefix(mustParse(t, address).Path, "/")
		owner.MustExec(`create role ` + role + ` login password 'secret'`)
		u := mustParse(t, address)
		u.User = url.UserPassword(role, "secret")
		var shared sharedLine
		db := storetest.OpenAs(t, pg.Config{URL: u.String(), Line: &shared})
		db.Signs("secret") // of which the role's rights are not the question here
		if err := db.Ping(t.Context()); err != nil || !strings.HasPrefix(shared.text, system+" 1 ") {
			t.Errorf("Ping = %v; shared is %q", err, shared.text)
		}
	}
}

// Readiness has connections of its pool, and must notice that the others can open none.
func TestConnects_FailsWhereTheRoleHasNoMoreConnections(t *testing.T) {
	t.Parallel()
	address := storetest.NewDatabase(t)
	owner := sqlx.MustConnect("postgres", address)
	defer owner.Close()
	u := mustParse(t, address)
	role := "few_" + strings.TrimPrefix(u.Path, "/")
	owner.MustExec(`create role ` + role + ` login password 'secret'`)
	u.User = url.UserPassword(role, "secret")
	db := storetest.OpenAs(t, pg.Config{URL: u.String()})
	db.Signs("secret")
	require.NoError(t, db.Health.PingContext(t.Context()))
	require.NoError(t, pg.Connects(t.Context(), db))
	owner.MustExec(`alter role ` + role + ` connection limit 1`)
	require.NoError(t, pg.Connects(t.Context(), db)) // it has some
	db.Pool.SetMaxIdleConns(-1)
	if err := pg.Connects(t.Context(), db); err == nil || !strings.Contains(err.Error(), "too many connections") {
		t.Errorf("Connects = %v, want the server's refusal", err)
	}
}

func mustParse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u
}
