package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"motorpool/simulator/devstack"
	"motorpool/store"
	"motorpool/store/pg"
)

// schema is the database that those of the stacks are copied from: it is migrated once.
const schema = "schema"

// shared is the Postgres of all stacks but those that ill-treat theirs. It starts when the
// first stack needs it.
var shared sharedPostgres

type sharedPostgres struct {
	once   sync.Once
	dir    string
	server *devstack.Postgres
	err    error
	last   atomic.Int64 // number of a database
}

func (p *sharedPostgres) start() error {
	var err error
	if p.dir, err = os.MkdirTemp("", "app-test-"); err != nil {
		return err
	}
	// Postgres may run as another user, who must reach its folder.
	if err := os.Chmod(p.dir, 0o711); err != nil {
		return err
	}
	if p.server, err = devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: p.dir}); err != nil {
		return err
	}
	if err := p.run(context.Background(), `create database `+schema); err != nil {
		return err
	}
	db, err := store.New(pg.Config{URL: p.url(schema)})
	if err != nil {
		return err
	}
	_, err = db.Migrate(context.Background())
	return errors.Join(err, db.Close())
}

// stop is for when no test runs any more.
func (p *sharedPostgres) stop() error {
	var err error
	if p.server != nil {
		err = p.server.Discard()
	}
	if p.dir != "" {
		err = errors.Join(err, os.RemoveAll(p.dir))
	}
	return err
}

func (p *sharedPostgres) run(ctx context.Context, statement string) error {
	admin, err := sql.Open("postgres", p.server.URL())
	if err != nil {
		return err
	}
	_, err = admin.ExecContext(ctx, statement)
	return errors.Join(err, admin.Close())
}

func (p *sharedPostgres) url(database string) string {
	u, err := url.Parse(p.server.URL())
	if err != nil {
		panic(err)
	}
	u.Path = "/" + database
	return u.String()
}

// newDatabase returns the address of a database of the test's own, with the schema, on a server that it must leave alone.
func newDatabase(t *testing.T) string {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	shared.once.Do(func() { shared.err = shared.start() })
	if shared.err != nil {
		t.Fatalf("start postgres: %v", shared.err)
	}
	name := fmt.Sprintf("test_%d", shared.last.Add(1))
	if err := shared.run(t.Context(), fmt.Sprintf(`create database %s template %s`, name, schema)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.run(context.Background(), fmt.Sprintf(`drop database %s with (force)`, name)); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return shared.url(name)
}
