package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"motorpool/broker"
	"motorpool/store"
	"motorpool/telematics"
)

// switching is what halting and lifting a halt have in common. They go to the database, past
// the service: a halt must be possible when nothing else works.
type switching struct {
	database
	Agency int64  `env:"-" placeholder:"N" help:"Only the vehicles of this agency (default those of all)."`
	By     string `env:"-" placeholder:"NAME" help:"Who it is, for the history (default the name of this account)."`
}

// change writes a halt's change down.
func (s switching) change(ctx context.Context, why string, write func(*store.Postgres, context.Context, telematics.Halt) (bool, error)) (bool, error) {
	if s.Agency < 0 {
		return false, fmt.Errorf("--agency: want a number from 1")
	}
	postgres, err := s.open()
	if err != nil {
		return false, err
	}
	defer postgres.Close()
	done, err := write(postgres, ctx, telematics.Halt{Agency: telematics.AgencyID(s.Agency), Why: why, By: cmp.Or(s.By, account())})
	return done, where(err)
}

// where says how to name the server, where it is away.
func where(err error) error {
	if store.Away(err) {
		return fmt.Errorf("%w\nnothing was changed, as far as is known (is that the right database? see --database-url)", err)
	}
	return err
}

func (s switching) whom() string {
	if s.Agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", s.Agency)
}

// account returns who runs this program.
func account() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), "operator")
}

type halt struct {
	switching
	Why string `required:"" env:"-" placeholder:"TEXT" help:"Why, for the callers and for the history."`
}

// Run returns when the halt holds at every instance.
func (h halt) Run(ctx context.Context) error {
	if h.Why == "" {
		return fmt.Errorf("--why: say why; callers read it")
	}
	known, err := h.change(ctx, h.Why, (*store.Postgres).Halt)
	switch {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("there is no %s", h.whom())
	}
	fmt.Fprintf(os.Stderr, "written down; it holds everywhere within %v\n", broker.HaltWithin)
	select {
	case <-time.After(broker.HaltWithin):
	case <-ctx.Done():
		return ctx.Err()
	}
	fmt.Printf("commands to vehicles of %s are halted; lift it with: motorpool resume%s\n", h.whom(), h.flag())
	return nil
}

func (s switching) flag() string {
	if s.Agency == 0 {
		return ""
	}
	return fmt.Sprintf(" --agency %d", s.Agency)
}

type resume struct{ switching }

func (r resume) Run(ctx context.Context) error {
	lifted, err := r.change(ctx, "", (*store.Postgres).Resume)
	switch {
	case err != nil:
		return err
	case !lifted:
		return fmt.Errorf("commands to vehicles of %s are not halted (motorpool halts lists what is)", r.whom())
	}
	fmt.Printf("commands to vehicles of %s may leave again\n", r.whom())
	return nil
}

type halts struct{ database }

func (h halts) Run(ctx context.Context) error {
	postgres, err := h.open()
	if err != nil {
		return err
	}
	defer postgres.Close()
	inForce, err := postgres.Halts(ctx)
	if err != nil {
		return where(err)
	}
	if len(inForce) == 0 {
		fmt.Println("no halt is in force")
	}
	for _, h := range inForce {
		s := switching{Agency: int64(h.Agency)}
		fmt.Printf("%s\tsince %s by %s: %s\n", s.whom(), h.Since.Format(time.RFC3339), h.By, h.Why)
	}
	return nil
}
