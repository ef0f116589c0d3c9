package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"motorpool/guard"
	"motorpool/httpapi/resource"
	"motorpool/internal/app"
	"motorpool/rental"
	"motorpool/store/agencykeys"
	"motorpool/store/pg"
	"motorpool/telematics"
)

type agency struct {
	Key agencyKey `cmd:"" help:"Manage the keys with which agencies' apps sign requests."`
}

type agencyKey struct {
	Add    addAgencyKey    `cmd:"" help:"Create a key for an agency, and print its id and its secret, which is shown only once."`
	List   listAgencyKeys  `cmd:"" help:"List the keys of an agency, without their secrets."`
	Retire retireAgencyKey `cmd:"" help:"Retire a key at a date, after the apps have another one."`
	Revoke revokeAgencyKey `cmd:"" help:"Revoke a key immediately and permanently."`
	Reseal resealKeys      `cmd:"" help:"Encrypt all secrets with the first key of --agency-secrets-key; the others can be removed then."`
}

// sealing is the setting of commands that read or write the secrets of keys.
type sealing struct {
	AgencySecretsKey app.Secret `placeholder:"KEY" help:"The service's key that encrypts the secrets; better set by the environment."`
}

func (s sealing) sealer() (*agencykeys.Sealer, error) {
	if s.AgencySecretsKey == "" {
		return nil, badUsage(
			"--agency-secrets-key: want the key that secrets are sealed with, as the service has it (make one: openssl rand -hex 32)",
		)
	}
	sealer, err := agencykeys.NewSealer(string(s.AgencySecretsKey))
	if err != nil {
		return nil, badUsage("--agency-secrets-key: %w", err)
	}
	return sealer, nil
}

// withAgencyKeys opens the database and calls use with its agency keys.
func (d database) withAgencyKeys(sealer *agencykeys.Sealer, use func(*agencykeys.Keys) error) error {
	return d.with(func(postgres *pg.DB) error { return use(agencykeys.New(postgres, sealer)) })
}

// keyCommand is embedded in commands about keys.
type keyCommand struct{ access }

// change sends the service a request to change a key; with --direct it calls write instead.
func (k keyCommand) change(
	ctx context.Context, path string, body any, sealer *agencykeys.Sealer, write func(*agencykeys.Keys) (rental.AgencyKey, error),
) (changed resource.AgencyKeyWithSecret, err error) {
	if k.Direct {
		err = k.withAgencyKeys(sealer, func(keys *agencykeys.Keys) error {
			key, err := write(keys)
			changed = resource.AgencyKeyWithSecret{AgencyKey: resource.NewAgencyKey(key), Secret: hex.EncodeToString(key.Secret)}
			return err
		})
		return changed, err
	}
	e, err := k.send(ctx, http.MethodPost, path, body)
	if err != nil {
		return changed, suggestDirect(err)
	}
	err = json.Unmarshal(e.Data, &changed)
	return changed, err
}

// holds waits until every instance applies a change that was made with --direct. Without it, the
// service has already waited.
func (k keyCommand) holds(ctx context.Context) error {
	if !k.Direct || guard.Pause(ctx, agencykeys.Within) {
		return nil
	}
	return failure{
		exitUnknown,
		fmt.Errorf("the change is stored, and every instance applies it within %s", telematics.Words(agencykeys.Within)),
	}
}

type addAgencyKey struct {
	keyCommand
	sealing
	Agency int64 `arg:"" help:"Id of the agency."`
}

// Run prints the key as assignments of shell variables.
func (a addAgencyKey) Run(ctx context.Context) error {
	if err := a.check(); err != nil {
		return err
	}
	var sealer *agencykeys.Sealer
	if a.Direct {
		var err error
		if sealer, err = a.sealer(); err != nil {
			return err
		}
	}
	key, err := a.change(
		ctx, fmt.Sprintf("agencies/%d/keys", a.Agency), nil, sealer,
		func(keys *agencykeys.Keys) (rental.AgencyKey, error) {
			return a.write(ctx, keys)
		},
	)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "AGENCY_KEY_ID=%s\nAGENCY_SECRET=%s\n", key.ID, key.Secret)
	hint(`
The secret is shown this once; lost, it is replaced by another key. Every instance takes the key within %s.

  1. build both into the app of agency %d (%s); try them: motorpool sign --help
  2. once the apps with it are out, let the agency's former key end, say in 30 days: motorpool agency key retire --agency %d FORMER_ID 720h
  3. motorpool agency key list --agency %d`, telematics.Words(agencykeys.Within), key.AgencyID, key.AgencyCode, key.AgencyID, key.AgencyID)
	return a.holds(ctx)
}

func (a addAgencyKey) write(ctx context.Context, keys *agencykeys.Keys) (rental.AgencyKey, error) {
	// If the service has a different sealing key, every request that the new key signs gets 503.
	if opened, all, err := keys.Opened(ctx); err != nil {
		return rental.AgencyKey{}, err
	} else if all > 0 && opened == 0 {
		return rental.AgencyKey{}, refused(
			"--agency-secrets-key opens none of the %d keys on record, so the service has another one; nothing was made. "+
				"Give the key that the service has; where that is lost, revoke those keys first, then give the service this one",
			all,
		)
	}
	key, exists, err := keys.Add(ctx, telematics.AgencyID(a.Agency), a.author())
	if err == nil && !exists {
		err = refused("there is no agency %d", a.Agency)
	}
	return key, err
}

// agencyFlag names the agency of a key.
type agencyFlag struct {
	keyCommand
	Agency int64 `env:"-" placeholder:"N" help:"Id of the agency; required unless --direct."`
}

// path returns the API path of the agency's keys, or of one of them.
func (a agencyFlag) path(more ...string) (string, error) {
	if a.Agency < 1 && !a.Direct {
		return "", badUsage("--agency: want the number of the agency")
	}
	return strings.Join(append([]string{"agencies", strconv.FormatInt(a.Agency, 10), "keys"}, more...), "/"), nil
}

type listAgencyKeys struct{ agencyFlag }

func (l listAgencyKeys) Run(ctx context.Context) error {
	path, err := l.path()
	if err := errors.Join(l.check(), err); err != nil {
		return err
	}
	columns := []column{
		"ID id", "AGENCY agency_id", "CODE agency_code", "STATE state", "UNTIL retires_at", "CREATED created_at",
	}
	if !l.Direct {
		return suggestDirect(l.list(ctx, path, columns))
	}
	return l.withAgencyKeys(nil, func(keys *agencykeys.Keys) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		shown := []resource.AgencyKey{}
		for _, k := range list {
			if l.Agency == 0 || k.Agency == telematics.AgencyID(l.Agency) {
				shown = append(shown, resource.NewAgencyKey(k))
			}
		}
		fmt.Fprintf(stderr, "keys: %d\n", len(shown))
		return l.printValue(shown, columns)
	})
}

type retireAgencyKey struct {
	agencyFlag
	ID    string `arg:"" help:"Id of the key."`
	Until string `arg:"" help:"${agency_until}."`
}

func (r retireAgencyKey) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	now := time.Now()
	until, err := untilWhen(r.Until, now)
	if err != nil {
		return badUsage("%w", err)
	}
	if !until.After(now) {
		return badUsage("%s is over; to end the key now: motorpool agency key revoke %s", date(until), r.ID)
	}
	path, err := r.path(url.PathEscape(r.ID), "retire")
	if err != nil {
		return err
	}
	body := map[string]any{"until": until.UTC().Format(time.RFC3339)}
	key, err := r.change(ctx, path, body, nil, func(keys *agencykeys.Keys) (rental.AgencyKey, error) {
		key, exists, err := keys.Retire(ctx, telematics.AgencyID(r.Agency), r.ID, until, r.author())
		if err == nil && !exists {
			err = refused("there is no key %s, or it is revoked; see: motorpool agency key list --direct", r.ID)
		}
		return key, err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s of agency %d is good until %s\n", key.ID, key.AgencyID, date(until))
	hint(`
Apps that sign with it get 401 agency_signature_invalid from then on. The date can be moved, by retiring it again,
before it has come and after; to end it now: motorpool agency key revoke --agency %d %s`, key.AgencyID, key.ID)
	return r.holds(ctx)
}

// untilWhen reads a duration from now, a date or a time.
func untilWhen(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).Truncate(time.Second), nil
	}
	if t, ok := dayOrInstant(text); ok {
		return t, nil
	}
	return time.Time{}, fmt.Errorf(
		"%q is no duration such as 720h, no date such as 2027-01-31, and no time such as 2027-01-31T12:00:00Z", text,
	)
}

type revokeAgencyKey struct {
	agencyFlag
	ID string `arg:"" help:"Id of the key."`
}

// Run returns when every instance refuses the key.
func (r revokeAgencyKey) Run(ctx context.Context) error {
	path, err := r.path(url.PathEscape(r.ID), "revoke")
	if err := errors.Join(r.check(), err); err != nil {
		return err
	}
	key, err := r.change(ctx, path, nil, nil, func(keys *agencykeys.Keys) (rental.AgencyKey, error) {
		key, exists, err := keys.Revoke(ctx, telematics.AgencyID(r.Agency), r.ID, r.author())
		if err == nil && !exists {
			err = refused("there is no key %s; see: motorpool agency key list --direct", r.ID)
		}
		return key, err
	})
	if err == nil {
		err = r.holds(ctx)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s of agency %d is revoked, at every instance\n", key.ID, key.AgencyID)
	hint(`
Apps that sign with it get 401 agency_signature_invalid. Another one for them: motorpool agency key add %d`, key.AgencyID)
	return nil
}

type resealKeys struct {
	database
	sealing
}

func (r resealKeys) Run(ctx context.Context) error {
	sealer, err := r.sealer()
	if err != nil {
		return err
	}
	err = r.withAgencyKeys(sealer, func(keys *agencykeys.Keys) error {
		n, err := keys.Reseal(ctx)
		fmt.Fprintf(stdout, "secrets sealed anew: %d\n", n)
		return err
	})
	if err != nil {
		return err
	}
	hint(`
All secrets are sealed with the first key. Once every instance has it first, the others can be left out of --agency-secrets-key.`)
	return nil
}
