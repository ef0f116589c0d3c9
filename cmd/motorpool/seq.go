package main

import (
	"context"
	"fmt"
	"time"

	"motorpool/store/commands"
	"motorpool/store/pg"
)

type seq struct {
	Advance advanceSeq `cmd:"" help:"Advance the command numbers after a restore that Postgres does not reveal; the service may run."`
}

type advanceSeq struct {
	database
	DryRun bool `env:"-" help:"Print what would be done, and change nothing."`
}

// Run uses the database, not the service.
func (a advanceSeq) Run(ctx context.Context) error {
	return a.with(func(postgres *pg.DB) error { return a.advance(ctx, postgres) })
}

func (a advanceSeq) advance(ctx context.Context, postgres *pg.DB) error {
	if a.DryRun {
		n, err := commands.Numbers{DB: postgres}.Read(ctx)
		if err != nil {
			return err
		}
		printNumbering(n)
		return nil
	}
	before, after, err := commands.Numbers{DB: postgres}.Raise(ctx, true)
	if err != nil {
		return err
	}
	fmt.Fprintf(
		stdout, "the numbers of commands jumped from %d to %d; the next command of every vehicle has a greater one\n",
		before, after,
	)
	return nil
}

func printNumbering(n commands.Numbering) {
	fmt.Fprintf(stdout, "the last number is %d; it would jump to %d or a little above\n", n.Last, n.Next)
	switch {
	case n.RaisedAt.IsZero():
		fmt.Fprintln(stdout, "it never jumped: the next command makes it jump")
	case !n.Current:
		fmt.Fprintf(
			stdout,
			"it jumped last at %s, and Postgres was started or promoted since: the next command makes it jump\n",
			n.RaisedAt.Format(time.RFC3339),
		)
	default:
		fmt.Fprintf(stdout, "it jumped last at %s, after the start or the promotion of this Postgres\n", n.RaisedAt.Format(time.RFC3339))
	}
}
