package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/logger"
	"motorpool/store/pg"
	"motorpool/store/vehicles"
)

type serve struct{ app.Config }

func (s serve) Run(ctx context.Context, settings *app.Settings) error {
	if err := errors.Join(settings.Problems(), s.Check()); err != nil {
		return badUsage("%w", err)
	}
	signal.Ignore(syscall.SIGPIPE) // a reader of the log that ends does not end the service
	lines := logger.NewWriter(os.Stderr)
	defer lines.Close()
	log := logger.New(lines, s.LogLevel, s.LogFormat)
	slog.SetDefault(log)
	listeners, err := s.Listen()
	if err != nil {
		return err
	}
	log.Info("motorpool", "version", version)
	s.Version, s.LogDropped = version, lines.Dropped
	return app.Serve(ctx, s.Config, listeners, log)
}

// database is the setting of commands that need nothing else.
type database struct {
	DatabaseURL app.Secret `default:"postgres://motorpool@127.0.0.1:5432/motorpool?sslmode=disable" placeholder:"URL" help:"Postgres (default ${default})."`
}

func (d database) open() (*pg.DB, error) {
	return pg.New(pg.Config{URL: string(d.DatabaseURL)})
}

type migrate struct {
	database
	GrantTo string `env:"-" placeholder:"ROLE" help:"Then give this role of the database the rights that 'serve --no-migrate' needs, and no others (default none)."`
}

func (m migrate) Run(ctx context.Context) error {
	postgres, err := m.open()
	if err != nil {
		return err
	}
	defer postgres.Close()
	version, err := postgres.Migrate(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "schema is at version", version)
	if m.GrantTo == "" {
		return nil
	}
	if err := postgres.Grant(ctx, m.GrantTo); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s has the rights that the service needs\n", m.GrantTo)
	return nil
}

type load struct {
	database
	File string `arg:"" type:"existingfile" help:"Fleet file, JSON; see docs/fleet.md."`
}

func (l load) Run(ctx context.Context) error {
	file, err := os.Open(l.File)
	if err != nil {
		return err
	}
	defer file.Close()
	fleet, err := vehicles.ParseFleetFile(file)
	if err != nil {
		return fmt.Errorf("%s:\n%w", l.File, err)
	}
	postgres, err := l.open()
	if err != nil {
		return err
	}
	defer postgres.Close()
	if _, err := postgres.Migrate(ctx); err != nil {
		return err
	}
	counts, err := vehicles.New(postgres).Import(ctx, fleet)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "imported", counts)
	return nil
}
