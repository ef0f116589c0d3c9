package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"motorpool/internal/app"
	"motorpool/internal/logger"
	"motorpool/internal/settings"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
)

type serve struct{ app.Config }

func (s serve) Run(ctx context.Context, reader *settings.Reader, unknown []settings.UnknownVariable) error {
	if err := errors.Join(reader.Problems(), s.Check()); err != nil {
		for _, variable := range unknown {
			hint("motorpool: %s", variable)
		}
		return badUsage("%w", err)
	}
	outliveReader()
	lines := logger.NewWriter(os.Stderr)
	defer lines.Close()
	log := logger.New(lines, s.LogLevel, s.LogFormat)
	slog.SetDefault(log)
	listeners, err := s.Listen()
	if err != nil {
		return err
	}
	log.Info("motorpool", "version", version)
	settings.LogUnknown(log, unknown)
	s.Version, s.LogDropped = version, lines.Dropped
	return app.Serve(ctx, s.Config, listeners, log)
}

// database is the setting of commands that need nothing else.
type database struct {
	DatabaseURL app.Secret `default:"postgres://motorpool@127.0.0.1:5432/motorpool?sslmode=disable" placeholder:"URL" help:"Postgres."`
}

// with opens the database, calls use, and closes it.
func (d database) with(use func(*pg.DB) error) error {
	postgres, err := pg.New(pg.Config{URL: string(d.DatabaseURL)})
	if err != nil {
		return badUsage("--database-url: %w", err)
	}
	defer postgres.Close()
	return use(postgres)
}

type migrate struct {
	database
	GrantTo string `env:"-" placeholder:"ROLE" help:"${serve_grant_to}."`
}

func (m migrate) Run(ctx context.Context) error {
	return m.with(func(postgres *pg.DB) error { return m.migrate(ctx, postgres) })
}

func (m migrate) migrate(ctx context.Context, postgres *pg.DB) error {
	if err := pg.Migrating(ctx, postgres); err != nil {
		hint("motorpool: waits, for five minutes at most: %v", err)
	}
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
	File   string `arg:"" type:"existingfile" help:"Fleet file, JSON; see docs/fleet.md. -: standard input."`
	DryRun bool   `env:"-" help:"Print what would change, and change nothing."`
	operatorFlag
}

func (l load) Run(ctx context.Context) error {
	outliveReader()
	changes, err := readFleetFile(ctx, l.File)
	if err != nil {
		return refused("%w\nnothing was changed", err)
	}
	return l.with(func(postgres *pg.DB) error { return l.apply(ctx, postgres, changes) })
}

func (l load) apply(ctx context.Context, postgres *pg.DB, changes vehicles.FleetChanges) error {
	if err := l.prepare(ctx, postgres); err != nil {
		return err
	}
	fleet := vehicles.New(postgres)
	plan, err := fleet.Plan(ctx, changes)
	switch {
	case unavailable.Is(err):
		return err
	case err != nil:
		return refused("%s:\n%w\nnothing was changed", l.File, err)
	}
	for _, line := range vehicles.Sentences(plan.Differences) {
		fmt.Fprintln(stdout, line)
	}
	if l.DryRun {
		fmt.Fprintln(stdout, "nothing was changed (--dry-run)")
		return nil
	}
	counts, err := fleet.Apply(ctx, plan, l.author())
	switch {
	case err == nil:
		fmt.Fprintln(stdout, counts)
	case ctx.Err() != nil, unavailable.Is(err), counts != vehicles.Imported{}:
		err = failure{exitUnknown, fmt.Errorf("%w\na part of the file may be written: import it again", err)}
	}
	return err
}

// outliveReader makes the program go on when the reader of its output ends, such as head: else a
// command that prints what it does before all is done would end there.
func outliveReader() { signal.Ignore(syscall.SIGPIPE) }

// prepare migrates the schema. A dry run only checks that it is up to date.
func (l load) prepare(ctx context.Context, postgres *pg.DB) error {
	if !l.DryRun {
		_, err := postgres.Migrate(ctx)
		return err
	}
	return postgres.Migrated(ctx)
}

// readFleetFile reads a fleet file; -: standard input.
func readFleetFile(ctx context.Context, name string) (vehicles.FleetChanges, error) {
	text, err := readFile(ctx, "FILE", name)
	if err != nil {
		return vehicles.FleetChanges{}, err
	}
	changes, err := vehicles.ReadFleetFile(bytes.NewReader(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return changes, err
}
