// Package world builds what the programs of the laboratory need: servers, keys and passwords,
// vehicles, tokens, instances of the service as separate processes, and simulated cars. Chaos
// breaks one; bench measures one.
//
//	w, err := world.New(dir, log)           // a folder with its secrets
//	defer w.Close()                         // ends everything in reverse order
//	err = w.StartServers(ctx, ...)          // Mosquitto, Redis, Postgres
//	err = w.Import(ctx, fleet)              // agencies and vehicles, after w.Migrate
//	n, err := w.StartInstance(ctx, ...)     // a process of the service
//	cars := w.StartCars(ctx, ...)           // simulated units
//	token, err := w.Token(actor, scopes...) // for the HTTP interface
//
// Each part works without the others.
package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/guard"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// World is servers, instances and cars with one folder. Its methods are not safe for concurrent
// use; those of its parts are.
type World struct {
	*folder.Folder
	InUse  InUse  // the secrets in use, those of the folder included
	Binary string // the program that StartInstance runs; see BuildProgram

	Mosquitto *devstack.Mosquitto
	Redis     *devstack.Redis
	Postgres  *devstack.Postgres
	Running   []*Instance // of the service

	fail context.CancelCauseFunc // of Run
}

// New opens the secrets of a folder, which must exist, and creates those that are missing. It
// starts nothing.
func New(dir string, log *slog.Logger) (*World, error) {
	in, err := folder.New(dir, log)
	w := &World{Folder: in}
	w.AddSigningKeys(w.Signing)
	w.InUse.AddKeys("key of tokens", w.Tokens)
	for name, secret := range map[string]string{
		"secret of units": w.UnitSecret, "password of the service at mosquitto": w.ServicePassword,
		"key of the payment processor": w.PaymentsKey, "secret of the payment processor's notices": w.WebhookSecret,
		"key of agencies' secrets": w.AgencySecrets, "password of the console": w.ConsolePassword,
	} {
		w.InUse.Add(name, secret)
	}
	return w, err
}

// Run opens the secrets of a folder as New does, calls do, which builds and uses the world, and
// closes it. Fail cancels the context of do; its reason is then part of Run's error.
func Run(ctx context.Context, dir, binary string, log *slog.Logger, do func(context.Context, *World) error) (err error) {
	w, err := New(dir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	w.Binary = binary
	ctx, w.fail = context.WithCancelCause(ctx)
	defer w.fail(nil)
	if err := do(ctx, w); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// Fail ends what Run runs. It is safe for concurrent use.
func (w *World) Fail(reason error) { w.fail(reason) }

// Step is a part of building a world.
type Step struct {
	What string
	Do   func(context.Context) error
}

// Build executes the steps in order, until one fails.
func (w *World) Build(ctx context.Context, steps ...Step) error {
	for _, step := range steps {
		if err := step.Do(ctx); err != nil {
			return fmt.Errorf("build the world: %s: %w", step.What, err)
		}
	}
	return nil
}

// TempDir creates an empty folder that other users can enter: Postgres runs as one.
func TempDir(prefix string) (string, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// ServersConfig configures the servers of a world.
type ServersConfig struct {
	Units []telematics.Unit // that may connect to Mosquitto, with UnitPassword
	Fsync bool              // Postgres waits for the disk at each commit
	// PostgresSettings are further ones, as name=value.
	PostgresSettings []string
}

// StartServers starts Mosquitto, Redis and Postgres, each with a folder in that of the world, and
// returns when they serve. Mosquitto has the account devstack.GatewayUser, with ServicePassword.
// Close discards their data.
func (w *World) StartServers(ctx context.Context, c ServersConfig) error {
	config := devstack.MosquittoConfig{
		Dir: w.Path("mosquitto"), Units: map[string]string{}, ServicePassword: w.ServicePassword, GatewayPassword: w.ServicePassword,
		Logger: w.LogFile("mosquitto"),
	}
	for _, unit := range c.Units {
		config.Units[string(unit)] = w.UnitPassword(unit)
		w.InUse.Add("password of unit "+string(unit), w.UnitPassword(unit))
	}
	var err error
	if w.Mosquitto, err = devstack.StartMosquitto(config); err != nil {
		return err
	}
	w.OnClose(w.Mosquitto.Close)
	if w.Redis, err = devstack.StartRedis(w.Path("redis"), nil); err != nil {
		return err
	}
	w.OnClose(w.Redis.Close)
	w.InUse.AddURL("password of redis", w.Redis.URL())
	if w.Postgres, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{
		Dir: w.Path("postgres"), Fsync: c.Fsync, Settings: c.PostgresSettings, Logger: w.LogFile("postgres"),
	}); err != nil {
		return err
	}
	w.OnClose(w.Postgres.Discard)
	w.InUse.AddURL("password of postgres", w.Postgres.URL())
	return nil
}

// LogFile returns a logger that writes the output of a server or an instance to a file in the
// folder, line by line.
func (w *World) LogFile(name string) *slog.Logger {
	log, file, err := openLog(w.Path(strings.ReplaceAll(name, " ", "-") + ".log"))
	if err != nil {
		w.Log.Warn("log file not opened", "process", name, "err", err)
		return slog.New(slog.DiscardHandler)
	}
	w.OnClose(file.Close)
	return log
}

func openLog(path string) (*slog.Logger, io.Closer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log file: %w", err)
	}
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: lineOnly})), file, nil
}

// lineOnly reduces a log record to the line that the process wrote.
func lineOnly(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, slog.LevelKey, "server":
		return slog.Attr{}
	case slog.MessageKey:
		if a.Value.String() == "server output" {
			return slog.Attr{}
		}
	}
	return a
}

// ErrNotInTime means that a condition did not hold in time.
var ErrNotInTime = folder.ErrNotInTime

// Eventually waits until a condition holds. The error names the condition that did not hold in
// time, and is ErrNotInTime unless the context ended before.
func Eventually(ctx context.Context, within time.Duration, condition string, holds func(context.Context) bool) error {
	return folder.Eventually(ctx, within, condition, holds)
}

// Pause waits, unless the context ends first.
func Pause(ctx context.Context, d time.Duration) { guard.Pause(ctx, d) }
