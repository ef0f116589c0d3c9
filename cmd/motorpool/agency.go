package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/rental"
	"motorpool/store"
	"motorpool/telematics"
)

type agency struct {
	Key agencyKey `cmd:"" help:"Keep the keys that agencies' apps sign their requests with."`
}

type agencyKey struct {
	Add    addAgencyKey    `cmd:"" help:"Make a key for an agency, and print its id and, this once, its secret."`
	List   listAgencyKeys  `cmd:"" help:"List the keys of all agencies, without their secrets."`
	Retire retireAgencyKey `cmd:"" help:"Let a key end at a date, once the apps have another one."`
	Revoke revokeAgencyKey `cmd:"" help:"End a key at once and for good."`
	Reseal resealKeys      `cmd:"" help:"Seal all secrets with the first key of --agency-secrets-key, so that the others are of no more use."`
}

// sealing is the setting of commands that see secrets.
type sealing struct {
	AgencySecretsKey app.Secret `placeholder:"KEY" help:"Key that secrets are sealed with, as the service has it; better set by the environment."`
}

func (s sealing) sealer() (*store.Sealer, error) {
	if s.AgencySecretsKey == "" {
		return nil, errors.New("--agency-secrets-key: want the key that secrets are sealed with, as the service has it (make one: openssl rand -hex 32)")
	}
	sealer, err := store.NewSealer(string(s.AgencySecretsKey))
	if err != nil {
		return nil, fmt.Errorf("--agency-secrets-key: %w", err)
	}
	return sealer, nil
}

// withAgencyKeys lends the keys of the database.
func (d database) withAgencyKeys(sealer *store.Sealer, use func(*store.AgencyKeys) error) error {
	postgres, err := d.open()
	if err != nil {
		return err
	}
	defer postgres.Close()
	return where(use(postgres.AgencyKeys(sealer)))
}

// holds waits until every instance acts upon a change.
func holds(ctx context.Context) error {
	select {
	case <-time.After(store.AgencyKeysWithin):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("not waited for; it is written down, and holds everywhere within %v", store.AgencyKeysWithin)
	}
}

type addAgencyKey struct {
	database
	sealing
	Agency int64 `arg:"" help:"Number of the agency."`
}

// Run prints what a shell can read in.
func (a addAgencyKey) Run(ctx context.Context) error {
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	return a.withAgencyKeys(sealer, func(keys *store.AgencyKeys) error {
		// The service would open it as little, and answer every request that it signs with 503.
		if opened, all, err := keys.Opened(ctx); err != nil {
			return err
		} else if all > 0 && opened == 0 {
			return fmt.Errorf("--agency-secrets-key opens none of the %d keys on record, so the service has another one; nothing was made. "+
				"Give the key that the service has; where that is lost, revoke those keys first, then give the service this one", all)
		}
		key, known, err := keys.Add(ctx, telematics.AgencyID(a.Agency), account())
		switch {
		case err != nil:
			return err
		case !known:
			return fmt.Errorf("there is no agency %d", a.Agency)
		}
		fmt.Printf("AGENCY_KEY_ID=%s\nAGENCY_SECRET=%s\n", key.ID, hex.EncodeToString(key.Secret))
		say(`
The secret is shown this once; lost, it is replaced by another key. Every instance takes the key within %v.

  1. build both into the app of agency %d (%s); try them: motorpool sign --help
  2. once the apps with it are out, let the agency's former key end, say in 30 days: motorpool agency key retire FORMER_ID 720h
  3. motorpool agency key list`, store.AgencyKeysWithin, key.Agency, key.AgencyCode)
		return holds(ctx)
	})
}

type listAgencyKeys struct{ database }

func (l listAgencyKeys) Run(ctx context.Context) error {
	return l.withAgencyKeys(nil, func(keys *store.AgencyKeys) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tAGENCY\tCODE\tSTATE\tUNTIL\tCREATED\tAGE")
		for _, k := range list {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Agency, k.AgencyCode, keyState(k, now), date(k.Retires), date(k.Created), age(k.Created, now))
		}
		return table.Flush()
	})
}

// keyState says of a key whose date has come what it is by now.
func keyState(k rental.AgencyKey, now time.Time) string {
	if k.State == rental.KeyRetiring && !k.Valid(now) {
		return "retired"
	}
	return string(k.State)
}

type agencyKeyID struct {
	ID string `arg:"" help:"Id of the key."`
}

type retireAgencyKey struct {
	database
	agencyKeyID
	Until string `arg:"" help:"Until when it is still good: a duration from now such as 720h, a date such as 2027-01-31 (its beginning, UTC), or a time such as 2027-01-31T12:00:00Z."`
}

func (r retireAgencyKey) Run(ctx context.Context) error {
	now := time.Now()
	until, err := untilWhen(r.Until, now)
	if err != nil {
		return err
	}
	if !until.After(now) {
		return fmt.Errorf("%s is over; to end the key now: motorpool agency key revoke %s", date(until), r.ID)
	}
	return r.withAgencyKeys(nil, func(keys *store.AgencyKeys) error {
		key, known, err := keys.Retire(ctx, r.ID, until, account())
		switch {
		case err != nil:
			return err
		case !known:
			return fmt.Errorf("there is no key %s, or it is revoked; see: motorpool agency key list", r.ID)
		}
		fmt.Printf("%s of agency %d is good until %s\n", key.ID, key.Agency, date(key.Retires))
		say(`
Apps that sign with it get 401 agency_signature_invalid from then on. The date can be moved, by retiring it again,
before it has come and after; to end it now: motorpool agency key revoke %s`, key.ID)
		return holds(ctx)
	})
}

// untilWhen reads a duration from now, a date or a time.
func untilWhen(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).Truncate(time.Second), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no duration such as 720h, no date such as 2027-01-31, and no time such as 2027-01-31T12:00:00Z", text)
}

type revokeAgencyKey struct {
	database
	agencyKeyID
}

// Run returns when the key is refused at every instance.
func (r revokeAgencyKey) Run(ctx context.Context) error {
	return r.withAgencyKeys(nil, func(keys *store.AgencyKeys) error {
		key, known, err := keys.Revoke(ctx, r.ID, account())
		switch {
		case err != nil:
			return err
		case !known:
			return fmt.Errorf("there is no key %s; see: motorpool agency key list", r.ID)
		}
		if err := holds(ctx); err != nil {
			return err
		}
		fmt.Printf("%s of agency %d is revoked, at every instance\n", key.ID, key.Agency)
		say(`
Apps that sign with it get 401 agency_signature_invalid. Another one for them: motorpool agency key add %d`, key.Agency)
		return nil
	})
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
	var failed error // which is no matter of the right database
	err = r.withAgencyKeys(sealer, func(keys *store.AgencyKeys) error {
		var n int
		n, failed = keys.Reseal(ctx)
		fmt.Printf("secrets sealed anew: %d\n", n)
		return nil
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	say(`
All secrets are sealed with the first key. Once every instance has it first, the others can be left out of --agency-secrets-key.`)
	return nil
}
