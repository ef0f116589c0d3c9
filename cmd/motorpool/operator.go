package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/operators"
	accounts "motorpool/store/operators"
	"motorpool/store/pg"
	"motorpool/telematics"
)

type operatorAccounts struct {
	Add      addOperator    `cmd:"" help:"Add a person, and print a link with which the person sets a password, once, within 24 hours."`
	List     listOperators  `cmd:"" help:"List the people who may sign in with a password."`
	Password resetOperator  `cmd:"" help:"Revoke a person's password and sessions, and print a link for a new password."`
	Remove   removeOperator `cmd:"" help:"Remove a person, and end the person's sessions immediately."`
}

// operatorCommand has the flags of the commands about operators. They use the database: before the
// first operator is added, no person could use the service.
type operatorCommand struct {
	database
	operatorFlag
}

// operatorFlag names who uses a command that writes to the database.
type operatorFlag struct {
	By string `env:"-" placeholder:"NAME" help:"The operator, for the audit log (default the name of this account)."`
}

func (o operatorFlag) author() telematics.Author {
	return telematics.OperatorAt(cmp.Or(o.By, account()))
}

// withOperators opens the database and calls use with its operators.
func (o operatorCommand) withOperators(use func(accounts.Store) error) error {
	return o.with(func(postgres *pg.DB) error { return use(accounts.Store{DB: postgres}) })
}

// newPassword has the flags of commands that give a person a password, or a link to choose one.
type newPassword struct {
	ConsoleURL    string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"The service's URL for browsers, the same as its setting."`
	PasswordStdin bool   `env:"-" help:"Read the password from the standard input, one line, instead of printing a link."`
}

// read returns the hash of the password in the standard input, or the address and the digest of a
// link.
func (n newPassword) read(ctx context.Context, name string) (hash, link string, digest []byte, err error) {
	if n.PasswordStdin {
		line, err := bufio.NewReader(io.LimitReader(stdin(ctx), 2*operators.MaxPassword)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", "", nil, fmt.Errorf("read the password: %w", err)
		}
		password := strings.TrimRight(line, "\r\n")
		if problem := operators.CheckPassword(name, password); problem != "" {
			return "", "", nil, badUsage("%s", problem)
		}
		return operators.HashPassword(password), "", nil, nil
	}
	address, err := url.Parse(n.ConsoleURL)
	if err != nil || address.Host == "" {
		return "", "", nil, badUsage("--console-url: want where browsers reach the service, such as https://fleet.example.com")
	}
	code, digest := operators.NewCode()
	address = address.JoinPath("auth/password")
	address.RawQuery = url.Values{"code": {code}}.Encode()
	return "", address.String(), digest, nil
}

// printLink prints the link for a person on the standard output, and what to do with it on the
// other.
func printLink(name, link string) {
	if link == "" {
		fmt.Fprintf(stderr, "%s can sign in with this password.\n", name)
		return
	}
	fmt.Fprintln(stdout, link)
	fmt.Fprintf(stderr, "Give %s this link: it sets a password once, until %s. Another link: motorpool operator password %s\n",
		name, time.Now().Add(operators.LinkFor).Format("2006-01-02 15:04"), name)
	if address, err := url.Parse(link); err == nil && isLoopback(address.Hostname()) {
		hint(
			"The link opens on this machine only. Give --console-url, or MOTORPOOL_CONSOLE_URL, the address at which browsers reach the " +
				"service.",
		)
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

type addOperator struct {
	operatorCommand
	newPassword
	Name   string `arg:"" help:"Name to sign in with, such as anna or anna@example.com; it is in the audit log."`
	Role   string `env:"-" required:"" enum:"admin,operator,viewer" placeholder:"admin|operator|viewer" help:"${operator_role}."`
	Agency *int64 `env:"-" placeholder:"N" help:"The person's agency; for all agencies: --scope all_agencies."`
	Scope  string `env:"-" placeholder:"SCOPES" help:"${operator_scope}."`
}

func (a addOperator) Run(ctx context.Context) error {
	name, _ := operators.ParseName(a.Name)
	o := operators.Operator{Name: name, Role: operators.Role(a.Role), Scopes: strings.Fields(a.Scope)}
	if a.Agency != nil {
		if *a.Agency < 1 {
			return badUsage("--agency: want 1 or more; for all agencies leave it out, and give --scope %s", auth.ScopeAllAgencies)
		}
		o.Agency = telematics.AgencyID(*a.Agency)
	}
	if err := o.Check(auth.ScopeAllAgencies, auth.AllScopes); err != nil {
		return badUsage("%w", err)
	}
	hash, link, digest, err := a.read(ctx, name)
	if err != nil {
		return err
	}
	o.Password = hash
	err = a.withOperators(func(s accounts.Store) error {
		if _, err := s.DB.Migrate(ctx); err != nil {
			return err
		}
		_, err := s.Add(ctx, o, digest, a.author())
		return err
	})
	switch {
	case errors.Is(err, accounts.ErrExists):
		return refused("there is an operator %s already; a new link: motorpool operator password %s", name, name)
	case errors.Is(err, accounts.ErrNoAgency):
		return refused("there is no agency %d; add it with: motorpool import", o.Agency)
	case err != nil:
		return err
	}
	printLink(name, link)
	return nil
}

// operatorJSON is an operator as it is printed.
type operatorJSON struct {
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	AgencyID  *int64     `json:"agency_id"`
	Scopes    []string   `json:"scopes"`
	State     string     `json:"state"`
	LinkUntil *time.Time `json:"link_until"`
	CreatedAt time.Time  `json:"created_at"`
}

func newOperatorJSON(o operators.Operator, now time.Time) operatorJSON {
	shown := operatorJSON{
		Name: o.Name, Role: string(o.Role), AgencyID: pg.Nullable(int64(o.Agency)), Scopes: append([]string{}, o.Scopes...),
		State: "active", LinkUntil: pg.Timestamp(o.LinkUntil), CreatedAt: o.Created,
	}
	if o.Password == "" {
		shown.State = "invited"
		if !now.Before(o.LinkUntil) {
			shown.State = "expired" // the link
		}
	}
	return shown
}

type listOperators struct {
	operatorCommand
	presentation
}

func (l listOperators) Run(ctx context.Context) error {
	shown := []operatorJSON{}
	err := l.withOperators(func(s accounts.Store) error {
		list, err := s.List(ctx)
		for _, o := range list {
			shown = append(shown, newOperatorJSON(o, time.Now()))
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.printValue(shown, []column{
		"NAME name", "ROLE role", "AGENCY agency_id", "SCOPES scopes", "STATE state", "LINK UNTIL link_until",
		"CREATED created_at",
	})
}

type resetOperator struct {
	operatorCommand
	newPassword
	Name string `arg:"" help:"Name of the person."`
}

func (r resetOperator) Run(ctx context.Context) error {
	name, _ := operators.ParseName(r.Name)
	hash, link, digest, err := r.read(ctx, name)
	if err != nil {
		return err
	}
	err = r.withOperators(func(s accounts.Store) error {
		_, found, err := s.Reset(ctx, name, hash, digest, r.author())
		return orNoOperator(name, found, err)
	})
	if err != nil {
		return err
	}
	printLink(name, link)
	return nil
}

type removeOperator struct {
	operatorCommand
	Name string `arg:"" help:"Name of the person."`
}

func (r removeOperator) Run(ctx context.Context) error {
	name, _ := operators.ParseName(r.Name)
	err := r.withOperators(func(s accounts.Store) error {
		_, found, err := s.Remove(ctx, name, r.author())
		return orNoOperator(name, found, err)
	})
	if err == nil {
		fmt.Fprintf(stdout, "%s is removed, and every session has ended.\n", name)
	}
	return err
}

func orNoOperator(name string, found bool, err error) error {
	if err == nil && !found {
		return refused("there is no operator %s; see: motorpool operator list", name)
	}
	return err
}
