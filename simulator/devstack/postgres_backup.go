package devstack

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"
)

// archiveDir is where a server that archives keeps its WAL.
func (p *Postgres) archiveDir() string { return filepath.Join(p.cluster.root, "archive") }

// Archive restarts the server so that it archives its WAL, for [Postgres.Backup].
func (p *Postgres) Archive(ctx context.Context) error {
	if err := p.cluster.account.mkdir(p.archiveDir()); err != nil {
		return err
	}
	if err := p.exec(ctx, `alter system set archive_mode = on`,
		`alter system set archive_command = 'test ! -f `+p.archiveDir()+`/%f && cp %p `+p.archiveDir()+`/%f'`); err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	return p.Restart()
}

// Archived returns when all WAL that was written by now is in the archive.
func (p *Postgres) Archived(ctx context.Context) error {
	segment, err := ask[string](ctx, p, `select pg_walfile_name(pg_switch_wal())`)
	if err != nil {
		return err
	}
	return p.await(ctx, "the WAL is archived", `select coalesce(last_archived_wal >= '`+segment+`', false) from pg_stat_archiver`)
}

// Backup is a copy of a server's data, from which it can be restored to a later moment.
type Backup struct {
	of      *Postgres
	cluster *cluster
	unlock  func()
}

// Backup copies the data with pg_basebackup to a folder, which is created.
func (p *Postgres) Backup(ctx context.Context, dir string) (*Backup, error) {
	unlock, err := LockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("back up postgres: %w", err)
	}
	c, err := p.copyIn(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		unlock()
		return nil, fmt.Errorf("back up postgres: %w", err)
	}
	return &Backup{p, c, unlock}, nil
}

// Restore starts a server with the data as they were at a moment after the backup, from the backup
// and the archive.
func (b *Backup) Restore(ctx context.Context, until time.Time) (*Postgres, error) {
	err := b.cluster.configure("recovery.signal", fmt.Sprintf(
		"restore_command = 'cp %s/%%f %%p'\nrecovery_target_time = '%s'\nrecovery_target_action = promote\n",
		b.of.archiveDir(), until.UTC().Format("2006-01-02 15:04:05.999999+00")))
	if err != nil {
		return nil, err
	}
	restored, err := onFreePorts(1, func(ports []int) (*Postgres, error) {
		p := &Postgres{cluster: b.cluster, port: ports[0], unlock: b.unlock}
		return p, p.startOn(ctx, PostgresConfig{}, slog.New(slog.DiscardHandler))
	})
	if err != nil {
		return nil, fmt.Errorf("restore postgres: %w", err)
	}
	return restored, restored.await(ctx, "the server is restored", `select not pg_is_in_recovery()`)
}

// exec runs statements, each by itself.
func (p *Postgres) exec(ctx context.Context, statements ...string) error {
	db, err := sql.Open("postgres", p.URL())
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
