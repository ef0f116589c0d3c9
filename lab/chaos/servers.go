package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/lab/chaos/network"
	"motorpool/lab/world"
)

// server is a process that faults can strike.
type server interface {
	Pause() error
	Resume() error
	Kill() error
	Restart() error
	Processes() ([]int, error)
}

func (r *round) server(name string) server {
	switch name {
	case Mosquitto:
		return r.Mosquitto
	case Redis:
		return r.Redis
	case Postgres:
		return r.Postgres
	}
	return r.Running[r.instance(name)]
}

// instance returns the number of the instance with a name.
func (r *round) instance(name string) int {
	return slices.IndexFunc(r.Running, func(n *world.Instance) bool { return n.Name == name })
}

// down records that a fault of the target makes instances unavailable, until the returned function
// is called.
func (r *round) down(target string) (over func()) {
	if target == Postgres || target == everything {
		return r.uptime.allDown()
	}
	for i, n := range r.Running {
		if target == n.Name || target == ServerLine(i, Postgres) {
			return r.uptime.down(i)
		}
	}
	return func() {}
}

// kill is kill -9, and a restart after a while.
func (r *round) kill(ctx context.Context, f Fault) error {
	defer r.down(f.Target)()
	if err := r.server(f.Target).Kill(); err != nil {
		return err
	}
	world.Pause(ctx, f.For)
	return r.server(f.Target).Restart()
}

// stop is SIGTERM, and a restart. A process that does not end during another fault is killed.
func (r *round) stop(_ context.Context, f Fault) error {
	defer r.down(f.Target)()
	if err := r.server(f.Target).Restart(); err != nil {
		r.Log.Info("process did not stop, restarting it", "target", f.Target, "err", err)
		return r.server(f.Target).Restart()
	}
	return nil
}

// freeze is SIGSTOP: connections stay open, and nothing answers.
func (r *round) freeze(ctx context.Context, f Fault) error {
	defer r.down(f.Target)()
	if err := r.server(f.Target).Pause(); err != nil {
		return err
	}
	world.Pause(ctx, f.For)
	return r.server(f.Target).Resume()
}

// emptyRedis deletes all keys of Redis repeatedly, so that commands are in flight meanwhile.
func (r *round) emptyRedis(ctx context.Context, f Fault) error {
	for end := time.Now().Add(f.For); time.Now().Before(end) && ctx.Err() == nil; {
		if err := r.redis.FlushAll(ctx).Err(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("empty redis: %w", err)
		}
		world.Pause(ctx, 300*time.Millisecond)
	}
	return nil
}

// loseUnstored kills all instances and empties Redis in the same moment, twice: what Postgres does
// not have is lost.
func (r *round) loseUnstored(ctx context.Context, f Fault) error {
	defer r.uptime.allDown()()
	for range 2 {
		var killed sync.WaitGroup
		failures := make([]error, len(r.Running)+1)
		for i, n := range r.Running {
			killed.Go(func() { failures[i] = n.Kill() })
		}
		killed.Wait()
		failures[len(r.Running)] = r.redis.FlushAll(ctx).Err()
		for _, n := range r.Running {
			failures = append(failures, n.Restart())
		}
		if err := errors.Join(failures...); err != nil {
			return err
		}
		world.Pause(ctx, f.For/2)
	}
	return nil
}

// fillDisk fills the disk of Postgres, which may refuse writes, or crash and not restart.
func (r *round) fillDisk(ctx context.Context, f Fault) error {
	if r.disk == nil {
		return errUnsupported
	}
	defer r.down(Postgres)()
	if err := r.disk.fill(); err != nil {
		return err
	}
	world.Pause(ctx, f.For)
	if err := r.disk.empty(); err != nil {
		return err
	}
	if world.Eventually(context.WithoutCancel(ctx), 5*time.Second, "postgres serves", r.postgresServes) == nil {
		return nil
	}
	r.Log.Info("postgres ended after the full disk, restarting it")
	return r.Postgres.Restart()
}

// postgresServes reports whether Postgres accepts writes.
func (r *round) postgresServes(ctx context.Context) bool {
	return r.set(ctx, `create temporary table chaos_probe as select 1`) == nil
}

func (r *round) cutLine(ctx context.Context, f Fault) error {
	defer r.down(f.Target)()
	line := r.lines[f.Target]
	line.Cut()
	world.Pause(ctx, f.For)
	return line.Mend()
}

// toxicLine returns an injector that makes a line toxic.
func toxicLine(toxic func(amount int64) network.Toxic) func(*round, context.Context, Fault) error {
	return func(r *round, ctx context.Context, f Fault) error {
		defer r.down(f.Target)()
		line := r.lines[f.Target]
		line.SetToxic(toxic(f.Amount))
		world.Pause(ctx, f.For)
		line.RemoveToxic()
		return nil
	}
}

// operate runs the program as an operator does, not through a line, and returns its standard
// output; if it fails, its standard error. The listener gets the standard error while it runs.
func (r *round) operate(ctx context.Context, listener io.Writer, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, r.World.Binary, words...)
	cmd.Env = append(os.Environ(), "MOTORPOOL_DATABASE_URL="+r.Postgres.URL(), "MOTORPOOL_SIGNING_KEYS="+r.Path(folder.SigningFile))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if listener != nil {
		cmd.Stderr = io.MultiWriter(&stderr, listener)
	}
	if err := cmd.Run(); err != nil {
		return stderr.String(), fmt.Errorf("motorpool %s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// disk is a small file system in memory, which can be filled without harm to other programs.
type disk struct{ dir string }

// diskSize is several times what a round writes.
const diskSize = "1g"

// mountDisk needs the right to mount, which root has outside of containers.
func mountDisk(dir string) (*disk, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may mount a small disk")
	}
	said, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+diskSize+",mode=0711", "motorpool-chaos", dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("mount a small disk: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return &disk{dir}, nil
}

func (d *disk) unmount() error {
	if said, err := exec.Command("umount", d.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("unmount the small disk: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return nil
}

func (d *disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill uses all free space.
func (d *disk) fill() error {
	file, err := os.Create(d.filler())
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	defer file.Close()
	// Smaller and smaller pieces, down to a byte.
	for size := 1 << 20; size > 0; {
		if n, err := file.Write(make([]byte, size)); err != nil || n < size {
			size /= 64
		}
	}
	return nil
}

func (d *disk) empty() error {
	if err := os.Remove(d.filler()); err != nil {
		return fmt.Errorf("empty the disk: %w", err)
	}
	return nil
}
