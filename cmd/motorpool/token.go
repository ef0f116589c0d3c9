package main

import (
	"slices"
	"strings"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/internal/app"
	"motorpool/internal/keyfile"
	"motorpool/telematics"
)

type token struct {
	Key      string        `required:"" type:"existingfile" placeholder:"FILE" help:"${token_key}."`
	Role     string        `enum:"admin,operator,viewer,client" default:"admin" help:"${token_role}."`
	Agency   *int64        `env:"-" placeholder:"N" help:"Bind the token to an agency; an admin needs it, or --scope all_agencies."`
	Scope    string        `env:"-" placeholder:"SCOPES" help:"${token_scope}."`
	Sub      string        `default:"dev" placeholder:"NAME" help:"Subject of the token."`
	TTL      time.Duration `default:"24h" placeholder:"DURATION" help:"Lifetime of the token."`
	Issuer   string        `default:"motorpool" help:"Issuer."`
	Audience string        `default:"motorpool" help:"Audience."`
}

func (t token) Run() error {
	private, err := keyfile.Read(t.Key)
	if err != nil {
		return badUsage("%w (want what 'motorpool keys new' prints)", err)
	}
	actor := telematics.Actor{Subject: t.Sub, Role: telematics.Role(t.Role)}
	level, below := map[string]auth.Level{"viewer": auth.Viewer, "operator": auth.Operator}[t.Role]
	if below {
		actor.Role = telematics.Admin
	}
	if t.Agency != nil {
		if *t.Agency < 1 {
			return badUsage("--agency: want 1 or more; for all agencies leave it out, and give --scope all_agencies")
		}
		actor.Agency = telematics.AgencyID(*t.Agency)
	}
	if actor.Role == telematics.Client && actor.Agency == 0 {
		return badUsage("--agency: a client is of one agency")
	}
	if actor.Role == telematics.Admin && actor.Agency == 0 && !slices.Contains(strings.Fields(t.Scope), auth.ScopeAllAgencies) {
		return badUsage("--agency: an admin is of one agency; for one of all agencies: --scope %s", auth.ScopeAllAgencies)
	}
	minted, err := app.Grant{
		Issuer: t.Issuer, Audience: t.Audience, Lifetime: t.TTL, Actor: actor, Level: level, Scope: t.Scope,
	}.Mint(private.Active().Key)
	return show(minted, err)
}
