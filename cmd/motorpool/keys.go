package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"motorpool/httpapi/resource"
	"motorpool/internal/keyfile"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

type keys struct {
	List     listKeys    `cmd:"" help:"List the signing keys: which one signs, since when; with an access token, how many units hold each."`
	Add      addKey      `cmd:"" help:"Add a signing key on standby, and print its id."`
	Export   exportKeys  `cmd:"" help:"Print the public halves of all signing keys, as JWKS: what every unit must know."`
	Activate activateKey `cmd:"" help:"Sign all commands with this key from now on. Refused while units report that they do not have it."`
	Retire   retireKey   `cmd:"" help:"Remove a key on standby, 60 s after it last signed."`
	New      newKeys     `cmd:"" help:"Print a new private JWKS with one key (Ed25519): an installation's first, or one for tokens."`
	Public   publicKeys  `cmd:"" help:"Print the public halves of any private JWKS, for example of the one that signs tokens."`
}

// signingKeys names the file of the keys that the service signs with.
type signingKeys struct {
	SigningKeys string `default:"keys/signing.jwks" placeholder:"FILE" help:"Private keys that sign commands, as JWKS."`
}

func (s signingKeys) read() (signing.Keychain, error) {
	chain, err := keyfile.Read(s.SigningKeys)
	if err != nil {
		return nil, s.explain(err)
	}
	if is, err := os.Stat(s.SigningKeys); err == nil && is.Mode().Perm()&0o007 != 0 {
		hint("WARNING: every user of this machine has access to the private keys: chmod 600 %s", s.SigningKeys)
	}
	return chain, nil
}

func (s signingKeys) edit(ctx context.Context, change func(signing.Keychain) (signing.Keychain, error)) error {
	return s.explain(keyfile.Edit(ctx, s.SigningKeys, func(c signing.Keychain) (signing.Keychain, error) {
		changed, err := change(c)
		if err != nil {
			return changed, failure{exitRefused, err}
		}
		return changed, nil
	}))
}

func (s signingKeys) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return badUsage("--signing-keys: %w (make one: umask 077; motorpool keys new > %s)", err, s.SigningKeys)
	}
	return err
}

// command returns a command line about the same file.
func (s signingKeys) command(words string) string {
	if os.Getenv("MOTORPOOL_SIGNING_KEYS") == s.SigningKeys || s.SigningKeys == "keys/signing.jwks" {
		return "motorpool keys " + words
	}
	verb, rest, _ := strings.Cut(words, " ")
	return strings.TrimSpace("motorpool keys " + verb + " --signing-keys " + s.SigningKeys + " " + rest)
}

// hint prints to standard error: standard output has the result alone.
func hint(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }

type listKeys struct {
	signingKeys
	connection
}

func (l listKeys) Run(ctx context.Context) error {
	chain, err := l.read()
	if err != nil {
		return err
	}
	now := time.Now()
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	counted := l.Token != ""
	fmt.Fprint(table, "ID\tSTATE\tCREATED\tACTIVE SINCE\tUNTIL\tAGE")
	if counted {
		fmt.Fprint(table, "\tHOLDING\tMISSING\tUNREPORTED")
	}
	fmt.Fprintln(table)
	for i, k := range chain {
		fmt.Fprintf(
			table, "%s\t%s\t%s\t%s\t%s\t%s", k.ID, chain.State(i), date(k.Created), date(k.Activated),
			date(k.Deactivated), age(k.Created, now),
		)
		if counted {
			holders, err := l.holders(ctx, k.ID)
			if err != nil { // the keys of the file are listed nevertheless
				hint("WARNING: units not counted: %v", err)
				counted = false
				fmt.Fprint(table, "\t-\t-\t-")
			} else {
				fmt.Fprintf(table, "\t%d\t%d\t%d", holders.Holding, holders.Missing, holders.Unreported)
			}
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// holders requests from the service which units hold a key.
func (r connection) holders(ctx context.Context, key string) (holders resource.KeyHolders, err error) {
	e, err := r.send(ctx, http.MethodGet, "units/keys?"+url.Values{"key": {key}}.Encode(), nil)
	if err == nil {
		err = json.Unmarshal(e.Data, &holders)
	}
	return holders, err
}

func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return telematics.Words(now.Sub(since))
}

type addKey struct{ signingKeys }

func (a addKey) Run(ctx context.Context) error {
	key, err := signing.NewKey()
	if err != nil {
		return err
	}
	var active string
	err = a.edit(ctx, func(c signing.Keychain) (signing.Keychain, error) {
		active = c.Active().ID
		return c.Add(key, time.Now())
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, key.ID)
	hint(`
Key %s is on standby: it signs nothing yet. The order from here on matters:

  1. %s > keyring.jwks
  2. provision EVERY unit with keyring.jwks, and every instance with the file
  3. %s
  4. at least %.0f s later: %s
  5. export again, and provision the units again`,
		key.ID, a.command("export"), a.command("activate "+key.ID), signing.RetireAfter.Seconds(), a.command("retire "+active))
	return nil
}

type exportKeys struct{ signingKeys }

func (e exportKeys) Run() error {
	chain, err := e.read()
	if err != nil {
		return err
	}
	return show(signing.EncodeKeyring(chain.Keyring()))
}

type keyID struct {
	ID string `arg:"" name:"kid" help:"Id of the key; where it begins with a dash, put -- before it."`
}

type activateKey struct {
	signingKeys
	connection
	keyID
	Force bool `env:"-" help:"Even if units report that they do not have the key, or if the service cannot count them."`
}

// checkUnits refuses a key that units do not have. Without an access token it only warns: the file
// may be on a machine that cannot reach the service.
func (a activateKey) checkUnits(ctx context.Context) error {
	if a.Token == "" {
		hint("WARNING: it was not counted which units have %s: that needs an access token (MOTORPOOL_TOKEN).", a.ID)
		return nil
	}
	holders, err := a.holders(ctx, a.ID)
	said := holders.Holding + holders.Missing
	switch {
	case err != nil && a.Force:
		hint("WARNING: it was not counted which units have %s: %v", a.ID, err)
		return nil
	case err != nil:
		return fmt.Errorf("count the units that have %s: %w\nnothing was changed; without counting: --force", a.ID, err)
	case holders.Missing > 0 && !a.Force:
		return failure{
			exitRefused,
			fmt.Errorf(
				"%d of the %d units that say which keys they have do not have %s, and would reject every command; the first: %s\n"+
					"nothing was changed; provision them, or --force",
				holders.Missing, said, a.ID,
				strings.Join(resource.List(holders.MissingUnits, func(u telematics.Unit) string { return string(u) }), ", "),
			),
		}
	}
	if holders.Missing > 0 {
		hint("WARNING: %d of the %d units that say which keys they have do not have %s.", holders.Missing, said, a.ID)
	}
	if holders.Unreported > 0 {
		hint("WARNING: %d units do not say which keys they have.", holders.Unreported)
	}
	return nil
}

func (a activateKey) Run(ctx context.Context) error {
	chain, err := a.read()
	if err != nil {
		return err
	}
	if waits := slices.ContainsFunc(chain[1:], func(k signing.FleetKey) bool { return k.ID == a.ID }); waits {
		if err := a.checkUnits(ctx); err != nil {
			return err
		}
	}
	var before signing.FleetKey
	now := time.Now()
	err = a.edit(ctx, func(c signing.Keychain) (signing.Keychain, error) {
		before = c.Active()
		return c.Activate(a.ID, now)
	})
	if err != nil {
		return err
	}
	if before.ID == a.ID {
		fmt.Fprintln(stdout, a.ID, "is active already")
		return nil
	}
	fmt.Fprintln(stdout, a.ID, "is active")
	hint(`
WARNING: a unit that does not know %s rejects every command from now on, with the
reason bad_signature. If there are any, go back immediately: %s

Running instances notice within two seconds, and log "signing key switched". Where each has a
copy of the file, give it the new one, and count the %.0f s from the last one's switch. Then:

  1. not before %s: %s
  2. %s > keyring.jwks
  3. provision the units again, so that they forget %s`,
		a.ID, a.command("activate "+before.ID), signing.RetireAfter.Seconds(),
		date(now.Add(signing.RetireAfter+time.Second)), a.command("retire "+before.ID), a.command("export"), before.ID)
	return nil
}

type retireKey struct {
	signingKeys
	keyID
	Force bool `env:"-" help:"Even if vehicles may still have commands that it signed. Never the active key."`
}

func (r retireKey) Run(ctx context.Context) error {
	err := r.edit(ctx, func(c signing.Keychain) (signing.Keychain, error) {
		if r.Force {
			return c.Remove(r.ID)
		}
		return c.Retire(r.ID, time.Now())
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, r.ID, "is retired")
	hint(`
Units may forget it now: %s > keyring.jwks, and provision them again.`, r.command("export"))
	return nil
}

type newKeys struct{}

func (newKeys) Run() error {
	key, err := signing.NewKey()
	if err != nil {
		return err
	}
	chain, err := signing.Keychain{}.Add(key, time.Now())
	if err != nil {
		return err
	}
	return show(chain.Encode())
}

type publicKeys struct {
	File string `arg:"" type:"existingfile" help:"Private JWKS."`
}

func (p publicKeys) Run() error {
	chain, err := keyfile.Read(p.File)
	if err != nil {
		return err
	}
	return show(signing.EncodeKeyring(chain.Keyring()))
}

// show prints a text, unless err is set, and returns err.
func show[T string | []byte](text T, err error) error {
	if err == nil {
		fmt.Fprintln(stdout, string(text))
	}
	return err
}
