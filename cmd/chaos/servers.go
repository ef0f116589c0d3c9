package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/cmd/chaos/network"
	"motorpool/cmd/internal/service"
)

// server is a process that faults strike.
type server interface {
	Pause() error
	Resume() error
	Kill() error
	Restart() error
}

func (w *world) server(name string) server {
	switch name {
	case mosquittoServer:
		return w.mosquitto
	case redisServer:
		return w.redis
	case postgresServer:
		return w.postgres
	}
	for _, n := range w.instances {
		if n.Name == name {
			return n
		}
	}
	panic("there is no server " + name)
}

// hindered counts what a fault of the target does to the uptime, until the returned function is called.
func (w *world) hindered(target string) (lift func()) {
	if target == postgresServer {
		return w.uptime.hinderAll()
	}
	for i, n := range w.instances {
		if target == n.Name || target == lineOf(i, postgresServer) {
			return w.uptime.hinderInstance(i)
		}
	}
	return func() {}
}

// kill is kill -9, and a restart after a while.
func (w *world) kill(ctx context.Context, f fault) error {
	defer w.hindered(f.Target)()
	if err := w.server(f.Target).Kill(); err != nil {
		return err
	}
	pause(ctx, f.For)
	return w.server(f.Target).Restart()
}

// stop is SIGTERM, and a restart. Who does not end while something else is broken is killed.
func (w *world) stop(_ context.Context, f fault) error {
	defer w.hindered(f.Target)()
	if err := w.server(f.Target).Restart(); err != nil {
		w.log.Info("started again", "target", f.Target, "after", err)
		return w.server(f.Target).Restart()
	}
	return nil
}

// freeze is SIGSTOP: connections stay open, and nothing answers.
func (w *world) freeze(ctx context.Context, f fault) error {
	defer w.hindered(f.Target)()
	if err := w.server(f.Target).Pause(); err != nil {
		return err
	}
	pause(ctx, f.For)
	return w.server(f.Target).Resume()
}

// emptyRedis empties it again and again: a command is in flight at any moment.
func (w *world) emptyRedis(ctx context.Context, f fault) error {
	options, err := redis.ParseURL(w.redis.URL())
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	for end := time.Now().Add(f.For); time.Now().Before(end) && ctx.Err() == nil; {
		if err := client.FlushAll(ctx).Err(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("empty redis: %w", err)
		}
		pause(ctx, 300*time.Millisecond)
	}
	return nil
}

// fillDisk leaves Postgres no byte. It may refuse writes, or crash, and then not come up by itself.
func (w *world) fillDisk(ctx context.Context, f fault) error {
	if w.disk == nil {
		return errNotHere
	}
	defer w.hindered(postgresServer)()
	if err := w.disk.fill(); err != nil {
		return err
	}
	pause(ctx, f.For)
	if err := w.disk.empty(); err != nil {
		return err
	}
	if service.Eventually(context.WithoutCancel(ctx), 5*time.Second, "postgres serves", w.postgresServes) == nil {
		return nil
	}
	w.log.Info("postgres did not survive the full disk by itself, and is started again")
	return w.postgres.Restart()
}

// errNotHere means that this machine cannot have that fault.
var errNotHere = errors.New("not available here")

// postgresServes proves that it takes writes.
func (w *world) postgresServes(ctx context.Context) bool {
	db, err := sql.Open("postgres", w.postgres.URL()+"&connect_timeout=2")
	if err != nil {
		return false
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `create temporary table chaos_probe as select 1`)
	return err == nil
}

func (w *world) cutLine(ctx context.Context, f fault) error {
	defer w.hindered(f.Target)()
	l := w.lines[f.Target]
	l.Cut()
	pause(ctx, f.For)
	return l.Mend()
}

// poison is a fault that changes what a line does to those who use it.
func poison(make func(fault) network.Toxic) func(*world, context.Context, fault) error {
	return func(w *world, ctx context.Context, f fault) error {
		defer w.hindered(f.Target)()
		l := w.lines[f.Target]
		l.Poison(make(f))
		pause(ctx, f.For)
		l.Cure()
		return nil
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
