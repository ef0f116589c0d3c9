package main

import (
	"context"
	"errors"

	"motorpool/httpapi/auth"
	"motorpool/operators"
	accounts "motorpool/store/operators"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// person is someone who uses the environment, with an access token.
type person struct {
	token  string // name of its variable
	level  auth.Level
	actor  telematics.Actor
	scopes []string
	// The variable of a link that signs in to the console, where the person has an account as well;
	// empty: it has neither.
	link string
	role operators.Role
}

var everything = []string{auth.ScopeAllAgencies, auth.ScopeHalt, auth.ScopeAgencyKeys}

var persons = []person{
	{
		"ADMIN_TOKEN", auth.Administrator, telematics.Actor{Subject: "admin", Role: telematics.Admin}, everything,
		"CONSOLE_URL", operators.Admin,
	},
	{
		"AGENCY_ADMIN_TOKEN", auth.Administrator,
		telematics.Actor{Subject: "agency-1-admin", Role: telematics.Admin, Agency: 1}, nil, "CONSOLE_URL_AGENCY",
		operators.Admin,
	},
	{
		"OPERATOR_TOKEN", auth.Operator, telematics.Actor{Subject: "operator", Role: telematics.Admin},
		[]string{auth.ScopeAllAgencies}, "CONSOLE_URL_OPERATOR", operators.Moves,
	},
	{
		"VIEWER_TOKEN", auth.Viewer, telematics.Actor{Subject: "viewer", Role: telematics.Admin},
		[]string{auth.ScopeAllAgencies}, "CONSOLE_URL_VIEWER", operators.Viewer,
	},
	{"CLIENT_TOKEN", 0, firstClient, nil, "", ""},
	{"OTHER_CLIENT_TOKEN", 0, otherClient, nil, "", ""},
	{"OTHER_AGENCY_CLIENT_TOKEN", 0, agency2sOwn, nil, "", ""},
}

// signInHint is below the form of the sign-in.
const signInHint = "This is a development installation. Sign in as admin, agency-1-admin, operator or viewer, " +
	"with the password that 'make dev' has printed " +
	"(CONSOLE_PASSWORD in .dev/env); or open the link that it has printed, which signs you in as admin."

// addOperators lets the persons in to the console, with the environment's password.
func (e *environment) addOperators(ctx context.Context, postgres *pg.DB) error {
	store, by, hash := accounts.Store{DB: postgres}, telematics.OperatorAt("make dev"), operators.HashPassword(e.ConsolePassword)
	for _, one := range persons {
		if one.link == "" {
			continue
		}
		known, found, err := store.ByName(ctx, one.actor.Subject)
		switch {
		case err != nil:
			return err
		case !found:
			_, err = store.Add(ctx, operators.Operator{
				Name: one.actor.Subject, Role: one.role, Agency: one.actor.Agency, Scopes: one.scopes, Password: hash,
			}, nil, by)
		case !operators.VerifyPassword(known.Password, e.ConsolePassword): // the folder is new
			_, _, err = store.Reset(ctx, known.Name, hash, nil, by)
		}
		if err != nil && !errors.Is(err, accounts.ErrExists) {
			return err
		}
	}
	return nil
}
