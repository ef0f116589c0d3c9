package devstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// PgBouncer is a connection pooler before a Postgres, on 127.0.0.1.
type PgBouncer struct {
	*child
	port   int
	target *url.URL
	dir    string
}

// StartPgBouncer returns when it serves. The mode is session, transaction or statement. It accepts
// every user, so it is for tests. It needs pgbouncer to be installed; Available says how.
func StartPgBouncer(ctx context.Context, p *Postgres, mode string) (*PgBouncer, error) {
	program, err := findProgram(PgBouncerServer)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(p.URL())
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgbouncer-") // it runs as another user, who must reach its file
	if err != nil {
		return nil, err
	}
	b, err := onFreePorts(1, func(ports []int) (*PgBouncer, error) {
		b := &PgBouncer{port: ports[0], target: target, dir: dir}
		return b, b.startOn(ctx, program, p.cluster.account, mode)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start pgbouncer: %w", err), os.RemoveAll(dir))
	}
	return b, nil
}

func (b *PgBouncer) startOn(ctx context.Context, program string, account *account, mode string) error {
	password, _ := b.target.User.Password()
	file := filepath.Join(b.dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s user=%s password=%s

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 20
`, b.target.Port(), b.target.User.Username(), password, b.port, mode)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	for _, path := range []string{b.dir, file} {
		if err := account.give(path); err != nil {
			return err
		}
	}
	var err error
	b.child, err = startChild(ctx, childConfig{
		name: "pgbouncer",
		command: func() (*exec.Cmd, error) {
			cmd := exec.Command(program, file)
			cmd.Dir, cmd.SysProcAttr = b.dir, account.attributes()
			return cmd, nil
		},
		serving: "process up",
		stop:    syscall.SIGINT,
	})
	return err
}

// URL is where clients connect to a database.
func (b *PgBouncer) URL(database string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", b.target.User.Username(), b.port, database)
}

// Close stops it.
func (b *PgBouncer) Close() error { return errors.Join(b.child.Close(), os.RemoveAll(b.dir)) }
