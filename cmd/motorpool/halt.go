package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"motorpool/broker"
	"motorpool/guard"
	"motorpool/httpapi/resource"
	"motorpool/store/commands"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// direct has the flags of commands that can bypass the service and write to the database.
type direct struct {
	database
	Direct bool   `env:"-" help:"Write directly to the database (--database-url), for when no instance answers."`
	By     string `env:"-" placeholder:"NAME" help:"With --direct: the operator, for the audit log (default the name of this account)."`
}

func (d direct) check() error {
	if d.By != "" && !d.Direct {
		return badUsage("--by: only with --direct; otherwise the token says who it is")
	}
	return nil
}

func (d direct) author() telematics.Author { return telematics.OperatorAt(cmp.Or(d.By, account())) }

// access is how commands that can bypass the service reach it, or the database.
type access struct {
	remote
	direct
}

// haltCommand has the flags that halt and resume share.
type haltCommand struct {
	access
	Agency *int64 `env:"-" placeholder:"N" help:"Only the vehicles of this agency (default those of all)."`
}

func (s haltCommand) check() error {
	if s.Agency != nil && *s.Agency < 1 { // 0 would be all agencies
		return badUsage("--agency: want a number from 1")
	}
	return s.direct.check()
}

// change writes a change of a halt to the database, and retries for retryFor.
func (s haltCommand) change(ctx context.Context, write func(*pg.DB) (bool, error)) (done bool, err error) {
	err = s.with(func(postgres *pg.DB) error {
		return retryUnavailable(ctx, func() (err error) {
			done, err = write(postgres)
			return err
		})
	})
	return done, err
}

// retryUnavailable calls do, which must be repeatable, until it succeeds or fails definitely, for
// retryFor.
func retryUnavailable(ctx context.Context, do func() error) error {
	for end := time.Now().Add(retryFor); ; {
		err := do()
		if code := exitCode(err); code != exitUnavailable && code != exitUnknown || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		fmt.Fprintf(stderr, "motorpool: %v; trying again\n", err)
		guard.Pause(ctx, time.Second)
	}
}

// retryFor is how long a request to an unavailable or full server is repeated: a kill switch must
// not give up because of a lock.
const retryFor = 10 * time.Second

// haltBudget is how long the service may take to answer: it waits until the halt holds. A request
// that hangs is repeated, or made with --direct.
const haltBudget = broker.HaltWithin + 6*time.Second

// suggestDirect adds to an error the command to use when no instance answers.
func suggestDirect(err error) error {
	if exitCode(err) == exitUnavailable {
		return failure{exitUnavailable, fmt.Errorf("%w\nwhere no instance answers: --direct", err)}
	}
	return err
}

// printInFlight prints the number of commands that the halt could not stop.
func printInFlight(e *resource.HaltEffect) {
	if e != nil && e.InFlight > 0 {
		fmt.Fprintf(stdout, "sent before, and may still be executed: %d command(s)\n", e.InFlight)
	}
}

// inForce returns the halts in force, with their effects if these can be counted.
func (a access) inForce(ctx context.Context) (list []resource.Halt, err error) {
	if a.Direct {
		err = a.with(func(postgres *pg.DB) error {
			halts, err := commands.HaltStore{DB: postgres}.Halts(ctx)
			if err == nil {
				list = withEffects(ctx, postgres, halts...)
			}
			return err
		})
		return list, err
	}
	e, err := a.send(ctx, http.MethodGet, "halts", nil)
	if err != nil {
		return nil, suggestDirect(err)
	}
	if err := json.Unmarshal(e.Data, &list); err != nil {
		return nil, fmt.Errorf("read halts: %w", err)
	}
	return list, nil
}

// withEffects counts in the database what each halt stops; it leaves that out if it fails.
func withEffects(ctx context.Context, postgres *pg.DB, of ...telematics.Halt) []resource.Halt {
	effects, err := commands.HaltStore{DB: postgres}.Effects(ctx, of)
	if err != nil {
		fmt.Fprintf(stderr, "motorpool: not counted: %v\n", err)
	}
	return resource.NewHalts(of, effects)
}

// agency returns zero for all.
func (s haltCommand) agency() telematics.AgencyID { return telematics.AgencyID(pg.Deref(s.Agency)) }

func (s haltCommand) scope() string { return scopeOf(s.Agency) }

// scopeOf names the vehicles of an agency; nil: of all.
func scopeOf(agency *int64) string {
	if agency == nil {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", *agency)
}

// flagOf returns the flag of a command line that names an agency; nil: all.
func flagOf(agency *int64) string {
	if agency == nil {
		return ""
	}
	return fmt.Sprintf(" --agency %d", *agency)
}

// account returns the name of the account that runs this program.
func account() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), "operator")
}

type halt struct {
	haltCommand
	Why string `required:"" env:"-" placeholder:"TEXT" help:"Reason, for callers and the audit log."`
}

// Run returns when the halt holds at every instance.
func (h halt) Run(ctx context.Context) error {
	if err := h.check(); err != nil {
		return err
	}
	if strings.TrimSpace(h.Why) == "" {
		return badUsage("--why: say why; callers read it")
	}
	halting := h.throughService
	if h.Direct {
		halting = h.throughDatabase
	}
	if err := halting(ctx); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "commands to vehicles of %s are halted; lift it with: motorpool resume%s\n", h.scope(), flagOf(h.Agency))
	return nil
}

func (h halt) throughService(ctx context.Context) error {
	body := map[string]any{"reason": h.Why, "agency_id": h.Agency}
	var answer envelope
	err := retryUnavailable(ctx, func() error {
		trying, cancel := context.WithTimeout(ctx, haltBudget)
		defer cancel()
		var err error
		answer, err = h.send(trying, http.MethodPut, "halts", body)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return failure{exitUnknown, fmt.Errorf("the halt of %s may be in force; check: motorpool halts", h.scope())}
	}
	var made resource.Halt
	if err == nil && json.Unmarshal(answer.Data, &made) == nil { // it is in force in any case
		printInFlight(made.Effect)
	}
	return suggestDirect(err)
}

func (h halt) throughDatabase(ctx context.Context) error {
	known, err := h.change(ctx, func(p *pg.DB) (bool, error) {
		_, known, err := commands.HaltStore{DB: p}.Halt(ctx, telematics.Halt{Agency: h.agency(), Why: h.Why}, h.author())
		return known, err
	})
	switch {
	case err != nil:
		return err
	case !known:
		return refused("there is no %s", h.scope())
	}
	fmt.Fprintf(stderr, "stored; it holds everywhere within %s\n", telematics.Words(broker.HaltWithin))
	if !guard.Pause(ctx, broker.HaltWithin) {
		return failure{
			exitUnknown,
			fmt.Errorf(
				"not every instance has read the halt of %s yet; it stays in force until: motorpool resume%s", h.scope(), flagOf(h.Agency),
			),
		}
	}
	return h.with(func(postgres *pg.DB) error {
		printInFlight(withEffects(ctx, postgres, telematics.Halt{Agency: h.agency()})[0].Effect)
		return nil
	})
}

type resume struct {
	haltCommand
	Why string `env:"-" placeholder:"TEXT" help:"Reason, for the audit log."`
}

// Run prints the halts that are still in force: lifting one agency's halt does not lift the halt of
// all agencies, nor the reverse.
func (r resume) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	lifting := r.throughService
	if r.Direct {
		lifting = r.throughDatabase
	}
	lifted, err := lifting(ctx)
	if err != nil {
		return err
	}
	inForce, err := r.inForce(ctx)
	switch {
	case err != nil && lifted:
		return failure{exitCode(err), fmt.Errorf("the halt of %s is lifted; whether another is in force: %w", r.scope(), err)}
	case err != nil:
		return err
	case !lifted:
		return notHalted(r.scope(), inForce)
	}
	for _, h := range inForce {
		if h.AgencyID == nil || r.Agency != nil && *r.Agency == *h.AgencyID {
			fmt.Fprintf(
				stdout, "the halt of %s is lifted; that of %s still stops its vehicles: %s\n", r.scope(), scopeOf(h.AgencyID), h.Reason,
			)
			return nil
		}
	}
	fmt.Fprintf(stdout, "commands to vehicles of %s can be sent again within a second; those that were refused are not sent\n", r.scope())
	for _, h := range inForce {
		if r.Agency == nil {
			fmt.Fprintf(stdout, "but for those of %s: %s\n", scopeOf(h.AgencyID), h.Reason)
		}
	}
	return nil
}

func (r resume) throughService(ctx context.Context) (bool, error) {
	query := url.Values{}
	if r.Agency != nil {
		query.Set("agency_id", strconv.FormatInt(*r.Agency, 10))
	}
	if r.Why != "" {
		query.Set("reason", r.Why)
	}
	path := strings.TrimSuffix("halts?"+query.Encode(), "?")
	again, lifted := false, false
	err := retryUnavailable(ctx, func() error {
		trying, cancel := context.WithTimeout(ctx, haltBudget)
		defer cancel()
		e, err := r.send(trying, http.MethodDelete, path, nil)
		switch {
		case err == nil:
			lifted = true
		case e.Error.Code == "halt_not_found":
			lifted = again // by an earlier attempt whose answer was lost
			return nil
		}
		again = again || exitCode(err) == exitUnknown
		return err
	})
	return lifted, suggestDirect(err)
}

func (r resume) throughDatabase(ctx context.Context) (bool, error) {
	return r.change(ctx, func(p *pg.DB) (bool, error) {
		return commands.HaltStore{DB: p}.Resume(ctx, r.agency(), r.Why, r.author())
	})
}

// notHalted returns the error for a halt that is not in force; it names those that are.
func notHalted(scope string, inForce []resource.Halt) error {
	if len(inForce) == 0 {
		return refused("there is no halt of %s, and no other either", scope)
	}
	others := resource.List(inForce, func(h resource.Halt) string { return "motorpool resume" + flagOf(h.AgencyID) })
	return refused("there is no halt of %s; what is in force is lifted with: %s", scope, strings.Join(others, ", "))
}

type halts struct{ access }

func (h halts) Run(ctx context.Context) error {
	if err := h.check(); err != nil {
		return err
	}
	shown, err := h.inForce(ctx)
	if err != nil {
		return err
	}
	message := "no halt is in force"
	if len(shown) > 0 {
		message = "halts in force; an agency of - is all agencies:"
	}
	fmt.Fprintln(stderr, message)
	return h.printValue(shown, []column{
		"AGENCY agency_id", "SINCE since", "BY by", "VEHICLES effect.vehicles", "IN FLIGHT effect.in_flight", "REASON reason",
	})
}
