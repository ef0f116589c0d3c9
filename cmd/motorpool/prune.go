package main

import (
	"context"
	"errors"
	"fmt"

	auditlog "motorpool/store/activity"
	stored "motorpool/store/alerts"
	"motorpool/store/commands"
	"motorpool/store/pg"
)

type prune struct {
	database
	KeepCommands int  `default:"24" placeholder:"MONTHS" help:"Whole months for which settled commands are kept, at least 3; 0: all."`
	KeepActivity int  `default:"24" placeholder:"MONTHS" help:"Whole months for which the audit log and cleared alerts are kept; 0: all."`
	DryRun       bool `env:"-" help:"Print what would be removed, and change nothing."`
}

const maxMonths = 1200 // a century, in months: Postgres has no date of 7,000 years ago

// Run uses the database, not the service, whose role may not remove history.
func (p prune) Run(ctx context.Context) error {
	outliveReader()
	if p.KeepActivity < 0 || p.KeepActivity > maxMonths {
		return badUsage("--keep-activity: want 0 to %d months", maxMonths)
	}
	if p.KeepCommands != 0 && (p.KeepCommands < commands.MinMonths || p.KeepCommands > maxMonths) {
		return badUsage(
			"--keep-commands: want 0 or %d to %d: for %[1]d months an answer may still settle a command whose result is unknown",
			commands.MinMonths, maxMonths,
		)
	}
	return p.with(func(postgres *pg.DB) error {
		return errors.Join(p.pruneCommands(ctx, postgres), p.pruneActivity(ctx, postgres))
	})
}

func (p prune) pruneActivity(ctx context.Context, postgres *pg.DB) error {
	if p.KeepActivity == 0 {
		fmt.Fprintln(stdout, "the whole audit log is kept")
		return nil
	}
	pruned, err := auditlog.Prune(ctx, postgres, p.KeepActivity, p.DryRun)
	p.printMonths(pruned.Months, "audit log entries")
	if err != nil {
		return err
	}
	if pruned.Others > 0 {
		fmt.Fprintf(stdout, "removed %d audit log entries from the default partition\n", pruned.Others)
	}
	fmt.Fprintf(stdout, "the audit log is kept from %s on\n", pruned.Before.Format("2006-01-02"))
	cleared, err := stored.Prune(ctx, postgres, pruned.Before, p.DryRun)
	fmt.Fprintf(stdout, "%s %d cleared alerts\n", p.done(), cleared)
	return err
}

func (p prune) pruneCommands(ctx context.Context, postgres *pg.DB) error {
	if p.KeepCommands == 0 {
		fmt.Fprintln(stdout, "all commands are kept")
		return nil
	}
	pruned, err := commands.Prune(ctx, postgres, p.KeepCommands, p.DryRun)
	p.printMonths(pruned.Months, "commands")
	if err != nil {
		return err
	}
	before := pruned.Before.Format("2006-01-02")
	switch {
	case !p.DryRun:
		fmt.Fprintf(
			stdout, "removed %d orders to many vehicles and %d answers to commands that were not on record\n",
			pruned.Bulks, pruned.Unrecorded,
		)
		fmt.Fprintf(stdout, "no command is on record from before %s\n", before)
	case len(pruned.Months) == 0:
		fmt.Fprintf(stdout, "no month to remove: no command is older than %s\n", before)
	}
	return nil
}

// done says in words whether something was removed.
func (p prune) done() string {
	if p.DryRun {
		return "would remove"
	}
	return "removed"
}

func (p prune) printMonths(months []pg.Month, what string) {
	for _, m := range months {
		fmt.Fprintf(stdout, "%s %s: about %d %s, %d MB\n", p.done(), m.Name, m.Rows, what, m.Bytes/1_000_000)
	}
}
