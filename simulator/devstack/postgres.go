package devstack

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	_ "github.com/lib/pq" // the driver that asks whether the server serves

	"motorpool/guard"
)

const (
	postgresUser     = "motorpool"
	postgresDatabase = "motorpool"

	// postgresReady covers the replay of what a killed server had not written back.
	postgresReady = 60 * time.Second
	// lingering is how long the last processes of a killed server may keep its shared memory.
	lingering = 10 * time.Second
)

// PostgresConfig configures a PostgreSQL.
type PostgresConfig struct {
	Dir string // holds the cluster and its password between runs; created if need be
	// Wait for the disk at each commit. Defaults to no: fast, and safe unless the machine itself
	// crashes.
	Fsync bool
	// Auth is how clients prove that they know the password. Defaults to scram-sha-256.
	Auth string
	// Settings are further ones, as name=value.
	Settings []string
	Logger   *slog.Logger // Defaults to silence
}

// RecommendedSettings are settings for the Postgres of a fleet. Its WAL consists mostly of whole
// pages, since vehicles report in turn and the first change of a page after a checkpoint writes the
// whole page. So checkpoints are rare, and these pages are compressed.
var RecommendedSettings = []string{"wal_compression=lz4", "checkpoint_timeout=15min", "max_wal_size=4GB"}

// Postgres is a PostgreSQL server on 127.0.0.1 whose data stays between runs. It can be frozen,
// killed and restarted.
type Postgres struct {
	*child
	cluster *cluster
	port    int
	unlock  func()
	once    sync.Once
}

// StartPostgres starts a server, and returns when it answers queries. It uses the installed
// programs; without any, it downloads them, which can take minutes, or returns an error
// that says how to get them.
//
// Started by root, the server runs as an unprivileged user. If that user cannot reach cfg.Dir, the
// data are in DataDir meanwhile. A folder can have one server at a time.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	unlock, err := LockFolder(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p, err := startLocked(ctx, cfg, log)
	if err != nil {
		unlock()
		return nil, err
	}
	p.unlock = unlock
	return p, nil
}

func startLocked(ctx context.Context, cfg PostgresConfig, log *slog.Logger) (*Postgres, error) {
	c, err := openCluster(ctx, &cfg, log)
	if err != nil {
		return nil, fmt.Errorf("prepare postgres: %w", err)
	}
	p, err := onFreePorts(1, func(ports []int) (*Postgres, error) {
		p := &Postgres{cluster: c, port: ports[0]}
		return p, p.startOn(ctx, cfg, log)
	})
	if err != nil {
		return nil, err
	}
	if err := p.createDatabase(ctx); err != nil {
		return nil, errors.Join(err, p.child.Close())
	}
	log.Info("postgres serves", "port", p.port, "data", c.dataDir(), "version", c.programs.major)
	return p, nil
}

// startOn starts the server, and retries while processes of a killed one still use its memory.
func (p *Postgres) startOn(ctx context.Context, cfg PostgresConfig, log *slog.Logger) error {
	deadline := time.Now().Add(lingering)
	for {
		var err error
		p.child, err = startChild(ctx, childConfig{
			name:    "postgres",
			command: func() (*exec.Cmd, error) { return p.command(cfg) },
			ready:   p.answers,
			within:  postgresReady,
			// "fast": rolls back what is open, and does not wait for clients.
			stop:   syscall.SIGINT,
			orphan: syscall.SIGQUIT, // "immediate": there is no client to wait for
			log:    log,
		})
		if err == nil || time.Now().After(deadline) || !strings.Contains(err.Error(), "pre-existing shared memory block") {
			return err
		}
		if !guard.Pause(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

func (p *Postgres) command(cfg PostgresConfig) (*exec.Cmd, error) {
	if err := p.cluster.endOrphan(); err != nil {
		return nil, err
	}
	durable := "off" // commits still reach the kernel, so they survive a killed server
	options := []string{"-D", p.cluster.dataDir(), "-p", strconv.Itoa(p.port)}
	if cfg.Fsync {
		durable = "on"
	} else {
		// A killed server leaves its shared memory behind: in its folder, which is removed.
		options = append(options, "-c", "dynamic_shared_memory_type=mmap")
	}
	for _, setting := range append([]string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=", // not reachable for other users of this machine
		"max_connections=200",
		"fsync=" + durable, "full_page_writes=" + durable,
	}, cfg.Settings...) {
		options = append(options, "-c", setting)
	}
	return p.cluster.program("postgres", options...), nil
}

// answers reports whether the server answers with its password: another one might accept a dial.
func (p *Postgres) answers(ctx context.Context) bool {
	// Until the server's first message, the driver uses this timeout and not the context.
	db, err := sql.Open("postgres", p.urlOf("postgres")+"&connect_timeout=2")
	if err != nil {
		return false
	}
	defer db.Close()
	return db.PingContext(ctx) == nil
}

func (p *Postgres) createDatabase(ctx context.Context) error {
	db, err := sql.Open("postgres", p.urlOf("postgres"))
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	defer db.Close()
	var exists bool
	err = db.QueryRowContext(ctx, `select exists (select from pg_database where datname = $1)`, postgresDatabase).Scan(&exists)
	if err == nil && !exists {
		_, err = db.ExecContext(ctx, `create database `+postgresDatabase)
	}
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

// URL returns the URL for clients, with the password, as a superuser.
func (p *Postgres) URL() string { return p.urlOf(postgresDatabase) }

// DataDir returns the folder of the data.
func (p *Postgres) DataDir() string { return p.cluster.dataDir() }

// Close stops the server and returns when it is gone. The data stay, in PostgresConfig.Dir if its
// file system has them.
func (p *Postgres) Close() error {
	err := p.child.Close()
	p.once.Do(func() {
		if err == nil {
			err = p.cluster.moveHome()
		}
		p.unlock()
	})
	return err
}

// Discard stops the server and removes its data, also outside of cfg.Dir. Tests use it: removing
// their temporary folder would not remove data outside of it.
func (p *Postgres) Discard() error {
	err := errors.Join(p.child.Close(), p.cluster.remove())
	p.once.Do(p.unlock)
	return err
}

func (p *Postgres) urlOf(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(postgresUser, p.cluster.password),
		Host:     fmt.Sprintf("127.0.0.1:%d", p.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}
