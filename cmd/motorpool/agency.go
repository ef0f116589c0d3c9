package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/rental"
	"motorpool/store/agencykeys"
	"motorpool/telematics"
)

type agency struct {
	Key agencyKey `cmd:"" help:"Keep the keys that agencies' apps sign their requests with."`
}

type agencyKey struct {
	Add    addAgencyKey    `cmd:"" help:"Make a key for an agency, and print its id and, this once, its secret."`
	List   listAgencyKeys  `cmd:"" help:"List the keys of an agency, without their secrets."`
	Retire retireAgencyKey `cmd:"" help:"Let a key end at a date, once the apps have another one."`
	Revoke revokeAgencyKey `cmd:"" help:"End a key immediately and permanently."`
	Reseal resealKeys      `cmd:"" help:"Seal all secrets with the first key of --agency-secrets-key, so that the others are of no more use."`
}

// sealing is the setting of commands that see secrets.
type sealing struct {
	AgencySecretsKey app.Secret `placeholder:"KEY" help:"Key that secrets are sealed with, as the service has it; better set by the environment."`
}

func (s sealing) sealer() (*agencykeys.Sealer, error) {
	if s.AgencySecretsKey == "" {
		return nil, badUsage("--agency-secrets-key: want the key that secrets are sealed with, as the service has it (make one: openssl rand -hex 32)")
	}
	sealer, err := agencykeys.NewSealer(string(s.AgencySecretsKey))
	if err != nil {
		return nil, badUsage("--agency-secrets-key: %w", err)
	}
	return sealer, nil
}

// withAgencyKeys lends the keys of the database.
func (d database) withAgencyKeys(sealer *agencykeys.Sealer, use func(*agencykeys.Keys) error) error {
	postgres, err := d.open()
	if err != nil {
		return badUsage("%w", err)
	}
	defer postgres.Close()
	return where(use(agencykeys.New(postgres.DB, sealer)))
}

// holds waits until every instance acts upon a change.
func holds(ctx context.Context) error {
	select {
	case <-time.After(agencykeys.Within):
		return nil
	case <-ctx.Done():
		return failure{exitUnknown, fmt.Errorf("not waited for; it is written down, and holds everywhere within %v", agencykeys.Within)}
	}
}

// keyJSON is a key as the service has it.
type keyJSON struct {
	ID         string          `json:"id"`
	AgencyID   int64           `json:"agency_id"`
	AgencyCode string          `json:"agency_code"`
	State      rental.KeyState `json:"state"`
	RetiresAt  *time.Time      `json:"retires_at"`
	CreatedAt  time.Time       `json:"created_at"`
	Secret     string          `json:"secret,omitempty"`
}

func newKeyJSON(k rental.AgencyKey, now time.Time) keyJSON {
	shown := keyJSON{
		ID: k.ID, AgencyID: int64(k.Agency), AgencyCode: k.AgencyCode, State: rental.KeyState(keyState(k, now)), CreatedAt: k.Created,
	}
	if !k.Retires.IsZero() {
		shown.RetiresAt = &k.Retires
	}
	return shown
}

func (k keyJSON) key() rental.AgencyKey {
	key := rental.AgencyKey{ID: k.ID, Agency: telematics.AgencyID(k.AgencyID), AgencyCode: k.AgencyCode, State: k.State, Created: k.CreatedAt}
	if k.RetiresAt != nil {
		key.Retires = *k.RetiresAt
	}
	return key
}

// changeKey has the service change a key, and returns it.
func (r remote) changeKey(ctx context.Context, path string, body any) (keyJSON, error) {
	var key keyJSON
	e, err := r.ask(ctx, http.MethodPost, path, body)
	if err == nil {
		err = json.Unmarshal(e.Data, &key)
	}
	return key, orDirect(err)
}

type addAgencyKey struct {
	remote
	direct
	sealing
	Agency int64 `arg:"" help:"Number of the agency."`
}

// Run prints what a shell can read in.
func (a addAgencyKey) Run(ctx context.Context) error {
	if err := a.check(); err != nil {
		return err
	}
	if a.Direct {
		return a.throughDatabase(ctx)
	}
	key, err := a.changeKey(ctx, fmt.Sprintf("agencies/%d/keys", a.Agency), nil)
	if err != nil {
		return err
	}
	a.print(key.key(), key.Secret)
	return nil
}

func (a addAgencyKey) print(key rental.AgencyKey, secret string) {
	fmt.Printf("AGENCY_KEY_ID=%s\nAGENCY_SECRET=%s\n", key.ID, secret)
	say(`
The secret is shown this once; lost, it is replaced by another key. Every instance takes the key within %v.

  1. build both into the app of agency %d (%s); try them: motorpool sign --help
  2. once the apps with it are out, let the agency's former key end, say in 30 days: motorpool agency key retire --agency %d FORMER_ID 720h
  3. motorpool agency key list --agency %d`, agencykeys.Within, key.Agency, key.AgencyCode, key.Agency, key.Agency)
}

func (a addAgencyKey) throughDatabase(ctx context.Context) error {
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	return a.withAgencyKeys(sealer, func(keys *agencykeys.Keys) error {
		// The service would open it as little, and answer every request that it signs with 503.
		if opened, all, err := keys.Opened(ctx); err != nil {
			return err
		} else if all > 0 && opened == 0 {
			return refused("--agency-secrets-key opens none of the %d keys on record, so the service has another one; nothing was made. "+
				"Give the key that the service has; where that is lost, revoke those keys first, then give the service this one", all)
		}
		key, known, err := keys.Add(ctx, telematics.AgencyID(a.Agency), a.author())
		switch {
		case err != nil:
			return err
		case !known:
			return refused("there is no agency %d", a.Agency)
		}
		a.print(key, hex.EncodeToString(key.Secret))
		return holds(ctx)
	})
}

// agencyFlag names the agency of a key.
type agencyFlag struct {
	Agency int64 `env:"-" placeholder:"N" help:"Number of the agency; needed but with --direct."`
}

// ofService returns the path of the agency's keys.
func (a agencyFlag) ofService(more string) (string, error) {
	if a.Agency < 1 {
		return "", badUsage("--agency: want the number of the agency")
	}
	return fmt.Sprintf("agencies/%d/keys", a.Agency) + more, nil
}

type listAgencyKeys struct {
	remote
	direct
	agencyFlag
}

func (l listAgencyKeys) Run(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	columns := []column{{"ID", "id"}, {"AGENCY", "agency_id"}, {"CODE", "agency_code"}, {"STATE", "state"}, {"UNTIL", "retires_at"}, {"CREATED", "created_at"}}
	if !l.Direct {
		path, err := l.ofService("")
		if err != nil {
			return err
		}
		return orDirect(l.list(ctx, path, columns))
	}
	return l.withAgencyKeys(nil, func(keys *agencykeys.Keys) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		shown := []keyJSON{}
		for _, k := range list {
			if l.Agency == 0 || k.Agency == telematics.AgencyID(l.Agency) {
				shown = append(shown, newKeyJSON(k, time.Now()))
			}
		}
		data, err := json.Marshal(shown)
		if err != nil {
			return err
		}
		return l.show(envelope{Message: fmt.Sprintf("keys: %d", len(shown)), Data: data}, columns)
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
	remote
	direct
	agencyFlag
	agencyKeyID
	Until string `arg:"" help:"Until when it is still good: a duration from now such as 720h, a date such as 2027-01-31 (its beginning, UTC), or a time such as 2027-01-31T12:00:00Z."`
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
	if r.Direct {
		return r.throughDatabase(ctx, until)
	}
	path, err := r.ofService("/" + url.PathEscape(r.ID) + "/retire")
	if err != nil {
		return err
	}
	key, err := r.changeKey(ctx, path, map[string]any{"until": until.UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	r.print(key.key())
	return nil
}

func (r retireAgencyKey) print(key rental.AgencyKey) {
	fmt.Printf("%s of agency %d is good until %s\n", key.ID, key.Agency, date(key.Retires))
	say(`
Apps that sign with it get 401 agency_signature_invalid from then on. The date can be moved, by retiring it again,
before it has come and after; to end it now: motorpool agency key revoke --agency %d %s`, key.Agency, key.ID)
}

func (r retireAgencyKey) throughDatabase(ctx context.Context, until time.Time) error {
	return r.withAgencyKeys(nil, func(keys *agencykeys.Keys) error {
		key, known, err := keys.Retire(ctx, telematics.AgencyID(r.Agency), r.ID, until, r.author())
		switch {
		case err != nil:
			return err
		case !known:
			return refused("there is no key %s, or it is revoked; see: motorpool agency key list", r.ID)
		}
		r.print(key)
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
	remote
	direct
	agencyFlag
	agencyKeyID
}

// Run returns when the key is refused at every instance.
func (r revokeAgencyKey) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Direct {
		return r.throughDatabase(ctx)
	}
	path, err := r.ofService("/" + url.PathEscape(r.ID) + "/revoke")
	if err != nil {
		return err
	}
	key, err := r.changeKey(ctx, path, nil)
	if err != nil {
		return err
	}
	r.print(key.key())
	return nil
}

func (r revokeAgencyKey) print(key rental.AgencyKey) {
	fmt.Printf("%s of agency %d is revoked, at every instance\n", key.ID, key.Agency)
	say(`
Apps that sign with it get 401 agency_signature_invalid. Another one for them: motorpool agency key add %d`, key.Agency)
}

func (r revokeAgencyKey) throughDatabase(ctx context.Context) error {
	return r.withAgencyKeys(nil, func(keys *agencykeys.Keys) error {
		key, known, err := keys.Revoke(ctx, telematics.AgencyID(r.Agency), r.ID, r.author())
		switch {
		case err != nil:
			return err
		case !known:
			return refused("there is no key %s; see: motorpool agency key list", r.ID)
		}
		if err := holds(ctx); err != nil {
			return err
		}
		r.print(key)
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
	err = r.withAgencyKeys(sealer, func(keys *agencykeys.Keys) error {
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
