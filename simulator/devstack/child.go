package devstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 10 * time.Second      // for a clean end; then the child is killed
	readyPoll    = 20 * time.Millisecond // between two looks at a starting child
)

// childConfig configures a server that runs as a child process.
type childConfig struct {
	name    string
	command func() (*exec.Cmd, error) // the command line, made anew for every start
	serving string                    // what it writes once it serves
	// ready reports whether the server serves. It is polled. Defaults to: it has written serving.
	ready  func(ctx context.Context) bool
	within time.Duration  // the time to become ready. Defaults to startTimeout
	stop   syscall.Signal // asks for a clean end. Defaults to SIGTERM
	// The signal that the child gets when its parent dies. Defaults to SIGKILL.
	orphan syscall.Signal
	log    *slog.Logger // Defaults to silence
}

// child is a server in a separate process and process group, so that a Ctrl-C in the terminal
// reaches only this process, and the servers end after their clients. Its methods are safe for
// concurrent use.
type child struct {
	cfg childConfig

	mu     sync.Mutex // guards what follows, and lets one operation at a time through
	proc   *process   // nil before the first start
	closed bool
}

// process is one run of a child.
type process struct {
	pid     int
	output  *output
	serving atomic.Bool   // it is ready, and was not asked to end
	frozen  bool          // guarded by the child's mutex
	exited  chan struct{} // closed at its end
	err     error         // how it ended; valid once exited is closed
}

func startChild(ctx context.Context, cfg childConfig) (*child, error) {
	cfg.within = cmp.Or(cfg.within, startTimeout)
	cfg.stop, cfg.orphan = cmp.Or(cfg.stop, syscall.SIGTERM), cmp.Or(cfg.orphan, syscall.SIGKILL)
	cfg.log = cmp.Or(cfg.log, slog.New(slog.DiscardHandler))
	c := &child{cfg: cfg}
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// PID returns the number of the server's process, as of its last start.
func (c *child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proc.pid
}

// Processes returns the numbers of the running server's process and of those that it has forked.
func (c *child) Processes() (pids []int, err error) {
	err = c.withRunning(func(p *process) error {
		children, err := childrenOf(p.pid)
		pids = append([]int{p.pid}, children...)
		return err
	})
	return pids, err
}

// Pause freezes the server (SIGSTOP): connections stay open and nothing answers.
func (c *child) Pause() error {
	return c.withRunning(func(p *process) error { return p.freeze() })
}

// Resume ends a Pause.
func (c *child) Resume() error {
	return c.withRunning(func(p *process) error { return p.thaw() })
}

// Kill kills the server (SIGKILL), and returns when it is gone. Restart starts it again.
func (c *child) Kill() error {
	return c.withRunning(func(p *process) error { return p.kill() })
}

// Restart starts the server again on the same port, after a clean stop if it still runs, and
// returns when it serves.
func (c *child) Restart() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("restart %s: it was closed", c.cfg.name)
	}
	if err := c.end(); err != nil {
		return err
	}
	return c.start(context.Background())
}

// Close stops the server and returns when it is gone. A second Close does nothing.
func (c *child) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.end()
}

func (c *child) withRunning(do func(*process) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.proc == nil || c.proc.gone() {
		return fmt.Errorf("%s is not running", c.cfg.name)
	}
	return do(c.proc)
}

// signal sends the running server a signal.
func (c *child) signal(s syscall.Signal) error {
	return c.withRunning(func(p *process) error { return syscall.Kill(p.pid, s) })
}

func (c *child) start(ctx context.Context) error {
	cmd, err := c.cfg.command()
	if err != nil {
		return fmt.Errorf("start %s: %w", c.cfg.name, err)
	}
	p, err := spawn(cmd, c.cfg)
	if err != nil {
		return fmt.Errorf("start %s: %w", c.cfg.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.within)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for !c.ready(ctx, p.output) {
		select {
		case <-p.exited:
			return fmt.Errorf("start %s: %w", c.cfg.name, p.failure())
		case <-ctx.Done():
			_ = p.kill()
			return fmt.Errorf("start %s: not ready: %w; its last words:\n%s", c.cfg.name, ctx.Err(), p.output.tail())
		case <-tick.C:
		}
	}
	p.serving.Store(true)
	c.proc = p
	return nil
}

func (c *child) ready(ctx context.Context, out *output) bool {
	if c.cfg.ready != nil {
		return c.cfg.ready(ctx)
	}
	return out.contains(c.cfg.serving)
}

// end stops the server if it runs.
func (c *child) end() error {
	p := c.proc
	if p == nil || p.gone() {
		return nil
	}
	p.serving.Store(false)
	if p.frozen { // it handles no signal
		_ = p.thaw()
	}
	if err := syscall.Kill(p.pid, c.cfg.stop); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s: %w", c.cfg.name, err)
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTimeout):
	}
	if err := p.kill(); err != nil {
		return fmt.Errorf("kill %s: %w", c.cfg.name, err)
	}
	return fmt.Errorf("stop %s: it did not end within %s and was killed; its last words:\n%s", c.cfg.name, stopTimeout, p.output.tail())
}

// spawn starts a process that dies with this one.
func spawn(cmd *exec.Cmd, cfg childConfig) (*process, error) {
	p := &process{output: &output{log: cfg.log, server: cfg.name}, exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe open
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, cfg.orphan)

	started := make(chan error, 1)
	go func() {
		// For the kernel the parent is the thread that forked. It must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.exited)
		if p.serving.Load() {
			cfg.log.Warn("server ended by itself", "server", cfg.name, "err", p.err)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

var errNoReason = errors.New("exit status 0")

// failure returns the error of a process that ended unexpectedly.
func (p *process) failure() error {
	last := p.output.tail()
	if strings.Contains(last, "Address already in use") {
		return fmt.Errorf("%w; its last words:\n%s", syscall.EADDRINUSE, last)
	}
	return fmt.Errorf("it ended immediately: %w; its last words:\n%s", cmp.Or(p.err, errNoReason), last)
}

// freeze stops the process first, so that it forks no more, and then those that it forked.
func (p *process) freeze() error {
	p.frozen = true
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	return p.signalChildren(syscall.SIGSTOP)
}

func (p *process) thaw() error {
	if err := p.signalChildren(syscall.SIGCONT); err != nil {
		return err
	}
	return syscall.Kill(p.pid, syscall.SIGCONT)
}

// kill ends the process and its children, which for Postgres would outlive it for a while and keep
// its memory in use.
func (p *process) kill() error {
	p.serving.Store(false)
	if err := p.freeze(); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	err := errors.Join(p.signalChildren(syscall.SIGKILL), syscall.Kill(p.pid, syscall.SIGKILL))
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-p.exited
	return nil
}

func (p *process) signalChildren(s syscall.Signal) error {
	pids, err := childrenOf(p.pid)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
	}
	return nil
}

// runWith runs a command to its end, or kills it when ctx ends. It returns the last lines of the
// command's output.
func runWith(ctx context.Context, cmd *exec.Cmd) (string, error) {
	said := &output{log: slog.New(slog.DiscardHandler)}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	return said.tail(), errors.Join(ctx.Err(), err)
}

// ProgramConfig configures a program that runs like a server: it writes a text when it serves, and
// ends cleanly on SIGTERM.
type ProgramConfig struct {
	Name    string
	Command func() *exec.Cmd // made anew for every start
	Serving string           // what it writes once it serves
	Logger  *slog.Logger     // Defaults to silence
}

// Program is a process that can be frozen, killed and restarted.
type Program struct{ *child }

// StartProgram starts a program, and returns when it serves, or after 30 s with an error.
func StartProgram(ctx context.Context, cfg ProgramConfig) (*Program, error) {
	c, err := startChild(ctx, childConfig{
		name: cfg.Name, command: func() (*exec.Cmd, error) { return cfg.Command(), nil }, serving: cfg.Serving,
		within: 30 * time.Second, log: cfg.Logger,
	})
	return &Program{c}, err
}
