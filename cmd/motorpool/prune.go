package main

import (
	"context"
	"fmt"

	"motorpool/store/commands"
	"motorpool/store/pg"
)

type prune struct {
	database
	KeepCommands int  `default:"24" placeholder:"MONTHS" help:"Whole months for which settled commands are kept, at least 3; 0: all of them (default ${default})."`
	DryRun       bool `env:"-" help:"Print what would be removed, and change nothing."`
}

// Run goes to the database, past the service: the service's role may remove no history.
func (p prune) Run(ctx context.Context) error {
	if p.KeepCommands != 0 && p.KeepCommands < commands.MinMonths {
		return badUsage("--keep-commands: want 0 or at least %d: for that time an answer may still settle a command whose result is unknown", commands.MinMonths)
	}
	postgres, err := p.open()
	if err != nil {
		return err
	}
	defer postgres.Close()
	if p.KeepCommands == 0 {
		fmt.Println("all commands are kept")
		return nil
	}
	pruned, err := commands.Prune(ctx, postgres, p.KeepCommands, p.DryRun)
	p.printMonths(pruned.Months, "commands")
	if err != nil {
		return explainUnavailable(err)
	}
	if !p.DryRun {
		fmt.Printf("removed %d orders to many vehicles and %d answers to commands that were not on record\n", pruned.Bulks, pruned.Unrecorded)
	}
	fmt.Printf("commands are on record from %s on\n", pruned.Before.Format("2006-01-02"))
	return nil
}

func (p prune) printMonths(months []pg.Month, what string) {
	done := "removed"
	if p.DryRun {
		done = "would remove"
	}
	for _, m := range months {
		fmt.Printf("%s %s: about %d %s, %d MB\n", done, m.Name, m.Rows, what, m.Bytes/1_000_000)
	}
}
