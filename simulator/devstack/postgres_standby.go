package devstack

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// StandbyConfig is a copy of a Postgres that follows it.
type StandbyConfig struct {
	Dir string // holds its data; empty, or created
	// host:port where it reaches the primary, such as that of a line that can be cut. Defaults to
	// the primary's own.
	Primary string
	// Commits of the primary wait for the standby. Defaults to no.
	Synchronous bool
	Logger      *slog.Logger // Defaults to silence
}

// standbyApplication is the name by which the primary knows the standby.
const standbyApplication = "motorpool_standby"

// StartStandby copies the server with pg_basebackup, and starts the copy as a standby that takes
// reads. It has the primary's users, passwords and settings. Promote makes a primary of
// it.
func (p *Postgres) StartStandby(ctx context.Context, cfg StandbyConfig) (*Postgres, error) {
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	unlock, err := LockFolder(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start standby: %w", err)
	}
	s, err := p.startStandbyLocked(ctx, cfg, log)
	if err != nil {
		unlock()
		return nil, fmt.Errorf("start standby: %w", err)
	}
	s.unlock = unlock
	if cfg.Synchronous {
		if err := p.commitWith(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("start standby: %w", err), s.Discard())
		}
	}
	return s, nil
}

// commitWith makes commits wait for the standby.
func (p *Postgres) commitWith(ctx context.Context) error {
	err := p.exec(ctx, `alter system set synchronous_standby_names = '`+standbyApplication+`'`, `select pg_reload_conf()`)
	if err != nil {
		return err
	}
	return p.await(ctx, "the standby is synchronous", `select exists (select from pg_stat_replication where sync_state = 'sync')`)
}

// URLWith is where clients connect that follow a failover to another server.
func (p *Postgres) URLWith(standby *Postgres) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1,127.0.0.1/%s?port=%d,%d&sslmode=disable&target_session_attrs=read-write",
		postgresUser, p.cluster.password, postgresDatabase, p.port, standby.port)
}

func (p *Postgres) startStandbyLocked(ctx context.Context, cfg StandbyConfig, log *slog.Logger) (*Postgres, error) {
	c, err := p.copyIn(ctx, cfg.Dir, log)
	if err != nil {
		return nil, err
	}
	if err := c.configure("standby.signal", p.standbySettings(cfg.Primary)); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	s, err := onFreePorts(1, func(ports []int) (*Postgres, error) {
		s := &Postgres{cluster: c, port: ports[0]}
		return s, s.startOn(ctx, PostgresConfig{}, log)
	})
	if err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return s, nil
}

// copyIn copies the data to a new cluster of a folder.
func (p *Postgres) copyIn(ctx context.Context, dir string, log *slog.Logger) (*cluster, error) {
	dir, err := realPath(dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{secret: filepath.Join(dir, "password"), password: p.cluster.password, programs: p.cluster.programs}
	if err := os.WriteFile(c.secret, []byte(c.password), 0o600); err != nil {
		return nil, err
	}
	if err := c.place(dir, log); err != nil {
		return nil, err
	}
	backup := c.program("pg_basebackup", "-D", c.dataDir(), "-h", "127.0.0.1", "-p", fmt.Sprint(p.port), "-U", postgresUser,
		"--checkpoint=fast", "--wal-method=stream", "--no-sync")
	backup.Env = append(backup.Env, "PGPASSWORD="+c.password)
	if said, err := runWith(ctx, backup); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w; it said:\n%s", err, said), c.remove())
	}
	return c, nil
}

// standbySettings say where the primary is.
func (p *Postgres) standbySettings(primary string) string {
	host, port, _ := strings.Cut(cmp.Or(primary, fmt.Sprintf("127.0.0.1:%d", p.port)), ":")
	return fmt.Sprintf(
		"primary_conninfo = 'host=%s port=%s user=%s password=%s application_name=%s connect_timeout=2'\n"+
			"wal_retrieve_retry_interval = '200ms'\n",
		host, port, postgresUser, p.cluster.password, standbyApplication,
	)
}

// configure sets how a copy recovers: as the signal file says, with settings.
func (c *cluster) configure(signal, settings string) error {
	for file, text := range map[string]string{signal: "", "postgresql.auto.conf": settings} {
		path := filepath.Join(c.dataDir(), file)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if err := c.account.give(path); err != nil {
			return err
		}
	}
	return nil
}

// Promote makes a primary of a standby, and returns when it takes writes. No statement waits for it
// at the standby: replay of what the primary has cleaned up meanwhile would wait for the snapshot
// of that statement.
func (p *Postgres) Promote(ctx context.Context) error {
	if _, err := ask[bool](ctx, p, `select pg_promote(false)`); err != nil {
		return fmt.Errorf("promote standby: %w", err)
	}
	return p.await(ctx, "the standby is promoted", `select not pg_is_in_recovery()`)
}

// InSync waits until the standby has replayed what the primary has written by now.
func (p *Postgres) InSync(ctx context.Context, primary *Postgres) error {
	written, err := ask[string](ctx, primary, `select pg_current_wal_lsn()::text`)
	if err != nil {
		return err
	}
	return p.await(ctx, "the standby has what the primary has written",
		`select coalesce(pg_last_wal_replay_lsn() >= '`+written+`', false)`)
}

// ask returns one value.
func ask[T any](ctx context.Context, p *Postgres, query string) (value T, err error) {
	db, err := sql.Open("postgres", p.URL())
	if err != nil {
		return value, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}

// await returns when a query returns true, or after formedWithin with an error.
func (p *Postgres) await(ctx context.Context, what, query string) error {
	return within(what, func() error {
		is, err := ask[bool](ctx, p, query)
		if err == nil && !is {
			err = errors.New("not yet")
		}
		return err
	})
}
