package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"motorpool/broker"
	"motorpool/store"
	"motorpool/telematics"
)

// switching is what halting and lifting a halt have in common. They go to the database, past
// the service: a halt must be possible when nothing else works.
type switching struct {
	database
	Agency *int64 `env:"-" placeholder:"N" help:"Only the vehicles of this agency (default those of all)."`
	By     string `env:"-" placeholder:"NAME" help:"Who it is, for the history (default the name of this account)."`
}

// change writes a halt's change down.
func (s switching) change(ctx context.Context, why string, write func(*store.Postgres, context.Context, telematics.Halt) (bool, error)) (bool, error) {
	if s.Agency != nil && *s.Agency < 1 { // 0 would be everybody
		return false, fmt.Errorf("--agency: want a number from 1")
	}
	postgres, err := s.open()
	if err != nil {
		return false, err
	}
	defer postgres.Close()
	h := telematics.Halt{Agency: s.agency(), Why: why, By: cmp.Or(s.By, account())}
	for end := time.Now().Add(insist); ; {
		done, err := write(postgres, ctx, h)
		if !store.Away(err) || ctx.Err() != nil || time.Now().After(end) {
			return done, where(err)
		}
		fmt.Fprintf(os.Stderr, "motorpool: %v; trying again\n", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// insist is how long a server that is away, or full, is asked again: a kill switch must not
// give up at the first lock that it meets.
const insist = 10 * time.Second

// where says how to name the server, where it is away.
func where(err error) error {
	if store.Away(err) {
		return fmt.Errorf("%w\nis that the right database? see --database-url", err)
	}
	return err
}

// inForce returns the halts in force.
func (d database) inForce(ctx context.Context) (telematics.Halts, error) {
	postgres, err := d.open()
	if err != nil {
		return nil, err
	}
	defer postgres.Close()
	inForce, err := postgres.Halts(ctx)
	return inForce, where(err)
}

// agency returns zero for all.
func (s switching) agency() telematics.AgencyID {
	if s.Agency == nil {
		return 0
	}
	return telematics.AgencyID(*s.Agency)
}

func (s switching) whom() string { return whom(s.agency()) }

func whom(agency telematics.AgencyID) string {
	if agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", agency)
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
		return fmt.Errorf("not waited for; the halt of %s is in force and stays so, until: motorpool resume%s", h.whom(), h.flag())
	}
	fmt.Printf("commands to vehicles of %s are halted; lift it with: motorpool resume%s\n", h.whom(), h.flag())
	return nil
}

func (s switching) flag() string {
	if s.Agency == nil {
		return ""
	}
	return fmt.Sprintf(" --agency %d", *s.Agency)
}

type resume struct{ switching }

// Run says which halts stay: that of everybody stops an agency whose own is lifted, and an
// agency's own outlives that of everybody.
func (r resume) Run(ctx context.Context) error {
	lifted, err := r.change(ctx, "", (*store.Postgres).Resume)
	switch {
	case err != nil:
		return err
	}
	inForce, err := r.inForce(ctx)
	switch {
	case err != nil && lifted:
		return fmt.Errorf("the halt of %s is lifted; whether another is in force: %w", r.whom(), err)
	case err != nil:
		return err
	case !lifted:
		return notHalted(r.whom(), inForce)
	}
	if h, halted := inForce.Stops(r.agency()); halted {
		fmt.Printf("the halt of %s is lifted; that of %s still stops its vehicles: %s\n", r.whom(), whom(h.Agency), h.Why)
		return nil
	}
	fmt.Printf("commands to vehicles of %s may leave again, within a second\n", r.whom())
	for _, h := range inForce {
		if r.agency() == 0 {
			fmt.Printf("but for those of %s: %s\n", whom(h.Agency), h.Why)
		}
	}
	return nil
}

// notHalted names the halts that may have been meant.
func notHalted(whom string, inForce telematics.Halts) error {
	if len(inForce) == 0 {
		return fmt.Errorf("there is no halt of %s, and no other either", whom)
	}
	var others []string
	for _, h := range inForce {
		s := switching{}
		if agency := int64(h.Agency); agency != 0 {
			s.Agency = &agency
		}
		others = append(others, "motorpool resume"+s.flag())
	}
	return fmt.Errorf("there is no halt of %s; what is in force is lifted with: %s", whom, strings.Join(others, ", "))
}

type halts struct{ database }

func (h halts) Run(ctx context.Context) error {
	inForce, err := h.inForce(ctx)
	if err != nil {
		return err
	}
	if len(inForce) == 0 {
		fmt.Println("no halt is in force")
	}
	for _, h := range inForce {
		fmt.Printf("%s\tsince %s by %s: %s\n", whom(h.Agency), h.Since.Format(time.RFC3339), h.By, h.Why)
	}
	return nil
}
