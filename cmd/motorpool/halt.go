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

// haltCommand has the flags that halt and resume share.
type haltCommand struct {
	remote
	direct
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

// inForce reads the halts in force from the database.
func (d database) inForce(ctx context.Context) (inForce telematics.Halts, err error) {
	err = d.with(func(postgres *pg.DB) (err error) {
		inForce, err = commands.HaltStore{DB: postgres}.Halts(ctx)
		return err
	})
	return inForce, err
}

// printInFlight prints the number of commands that the halt could not stop.
func printInFlight(e *resource.HaltEffect) {
	if e != nil && e.InFlight > 0 {
		fmt.Fprintf(stdout, "sent before, and may still be executed: %d command(s)\n", e.InFlight)
	}
}

// effects counts in the database what each halt stops; nil if that fails.
func effects(ctx context.Context, postgres *pg.DB, of ...telematics.Halt) []*resource.HaltEffect {
	counted := make([]*resource.HaltEffect, len(of))
	found, err := commands.HaltStore{DB: postgres}.Effects(ctx, of)
	if err != nil {
		fmt.Fprintf(stderr, "motorpool: not counted: %v\n", err)
	}
	for i, e := range found {
		counted[i] = new(resource.HaltEffect(e))
	}
	return counted
}

// listHalts requests the halts in force from the service.
func (r remote) listHalts(ctx context.Context) ([]resource.Halt, error) {
	e, err := r.send(ctx, http.MethodGet, "halts", nil)
	if err != nil {
		return nil, suggestDirect(err)
	}
	var list []resource.Halt
	if err := json.Unmarshal(e.Data, &list); err != nil {
		return nil, fmt.Errorf("read halts: %w", err)
	}
	return list, nil
}

// remoteHalts is listHalts without the effects.
func (r remote) remoteHalts(ctx context.Context) (telematics.Halts, error) {
	list, err := r.listHalts(ctx)
	if err != nil {
		return nil, err
	}
	halts := make(telematics.Halts, len(list))
	for i, h := range list {
		halts[i] = telematics.Halt{Why: h.Reason, By: h.By}
		if h.AgencyID != nil {
			halts[i].Agency = telematics.AgencyID(*h.AgencyID)
		}
	}
	return halts, nil
}

// agency returns zero for all.
func (s haltCommand) agency() telematics.AgencyID {
	if s.Agency == nil {
		return 0
	}
	return telematics.AgencyID(*s.Agency)
}

func (s haltCommand) scope() string { return scopeOf(s.agency()) }

func scopeOf(agency telematics.AgencyID) string {
	if agency == 0 {
		return "all agencies"
	}
	return fmt.Sprintf("agency %d", agency)
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
	fmt.Fprintf(stdout, "commands to vehicles of %s are halted; lift it with: motorpool resume%s\n", h.scope(), h.flag())
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
			fmt.Errorf("not every instance has read the halt of %s yet; it stays in force until: motorpool resume%s", h.scope(), h.flag()),
		}
	}
	return h.with(func(postgres *pg.DB) error {
		printInFlight(effects(ctx, postgres, telematics.Halt{Agency: h.agency()})[0])
		return nil
	})
}

func (s haltCommand) flag() string {
	if s.Agency == nil {
		return ""
	}
	return fmt.Sprintf(" --agency %d", *s.Agency)
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
	lifting, list := r.throughService, r.remoteHalts
	if r.Direct {
		lifting, list = r.throughDatabase, r.inForce
	}
	lifted, err := lifting(ctx)
	if err != nil {
		return err
	}
	inForce, err := list(ctx)
	switch {
	case err != nil && lifted:
		return failure{exitCode(err), fmt.Errorf("the halt of %s is lifted; whether another is in force: %w", r.scope(), err)}
	case err != nil:
		return err
	case !lifted:
		return notHalted(r.scope(), inForce)
	}
	if h, halted := inForce.Stops(r.agency()); halted {
		fmt.Fprintf(stdout, "the halt of %s is lifted; that of %s still stops its vehicles: %s\n", r.scope(), scopeOf(h.Agency), h.Why)
		return nil
	}
	fmt.Fprintf(stdout, "commands to vehicles of %s can be sent again within a second; those that were refused are not sent\n", r.scope())
	for _, h := range inForce {
		if r.agency() == 0 {
			fmt.Fprintf(stdout, "but for those of %s: %s\n", scopeOf(h.Agency), h.Why)
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
func notHalted(scope string, inForce telematics.Halts) error {
	if len(inForce) == 0 {
		return refused("there is no halt of %s, and no other either", scope)
	}
	var others []string
	for _, h := range inForce {
		s := haltCommand{}
		if agency := int64(h.Agency); agency != 0 {
			s.Agency = &agency
		}
		others = append(others, "motorpool resume"+s.flag())
	}
	return refused("there is no halt of %s; what is in force is lifted with: %s", scope, strings.Join(others, ", "))
}

type halts struct {
	remote
	direct
}

func (h halts) Run(ctx context.Context) error {
	if err := h.check(); err != nil {
		return err
	}
	list := h.listHalts
	if h.Direct {
		list = h.readHalts
	}
	shown, err := list(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	message := "no halt is in force"
	if len(shown) > 0 {
		message = "halts in force; an agency of - is all agencies:"
	}
	return h.show(envelope{Message: message, Data: data}, []column{
		"AGENCY agency_id", "SINCE since", "BY by", "VEHICLES effect.vehicles", "IN FLIGHT effect.in_flight", "REASON reason",
	})
}

// readHalts is listHalts from the database.
func (h halts) readHalts(ctx context.Context) (shown []resource.Halt, err error) {
	err = h.with(func(postgres *pg.DB) error {
		inForce, err := commands.HaltStore{DB: postgres}.Halts(ctx)
		if err != nil {
			return err
		}
		counted := effects(ctx, postgres, inForce...)
		shown = make([]resource.Halt, len(inForce))
		for i, halt := range inForce {
			shown[i] = resource.Halt{NamedHalt: resource.NewNamedHalt(halt), Effect: counted[i]}
		}
		return nil
	})
	return shown, err
}
