package main

import (
	"fmt"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/keyfile"
	"motorpool/telematics"
)

type token struct {
	Key      string        `required:"" type:"existingfile" placeholder:"FILE" help:"Private JWKS; the service must know its public half (--token-keys)."`
	Role     string        `enum:"admin,client" default:"admin" help:"admin or client (default ${default})."`
	Agency   *int64        `placeholder:"N" help:"Bind the token to an agency (default none: an admin sees all)."`
	Sub      string        `default:"dev" placeholder:"NAME" help:"Who it is (default ${default})."`
	TTL      time.Duration `default:"24h" placeholder:"DURATION" help:"How long it is good for (default ${default})."`
	Issuer   string        `default:"motorpool" help:"Issuer (default ${default})."`
	Audience string        `default:"motorpool" help:"Audience (default ${default})."`
}

func (t token) Run() error {
	private, err := keyfile.Read(t.Key)
	if err != nil {
		return fmt.Errorf("%w (want what 'motorpool keys new' prints)", err)
	}
	actor := telematics.Actor{Subject: t.Sub, Role: telematics.Role(t.Role)}
	if t.Agency != nil {
		if *t.Agency < 1 {
			return fmt.Errorf("--agency: want 1 or more; leave it out for all agencies")
		}
		actor.Agency = telematics.AgencyID(*t.Agency)
	}
	if actor.Role == telematics.Client && actor.Agency == 0 {
		return fmt.Errorf("--agency: a client is of one agency")
	}
	minted, err := app.Grant{
		Issuer: t.Issuer, Audience: t.Audience, Lifetime: t.TTL, Actor: actor,
	}.Mint(private.Active().SigningKey)
	return show(minted, err)
}
