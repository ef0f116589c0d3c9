package main

import (
	"context"
	"encoding/json"
	"fmt"

	"motorpool/internal/app"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

type passwd struct {
	Units           string     `type:"existingfile" placeholder:"FILE" help:"Fleet file whose units get a password. -: standard input."`
	UnitSecret      app.Secret `placeholder:"SECRET" help:"Secret from which the units' passwords are derived, as by 'simulate --secret'."`
	ServicePassword app.Secret `placeholder:"SECRET" help:"Print the service's line instead."`
	Format          string     `enum:"mosquitto,json" default:"mosquitto" help:"mosquitto: a password file; json: for 'simulate --units'."`
}

func (p passwd) Run(ctx context.Context) error {
	forUnits := p.Units != "" || p.UnitSecret != "" || p.Format != "mosquitto"
	if p.ServicePassword != "" && forUnits {
		return badUsage(
			"want either --units FILE with --unit-secret SECRET, or --service-password SECRET (is MOTORPOOL_SERVICE_PASSWORD or " +
				"MOTORPOOL_UNIT_SECRET set?)",
		)
	}
	if p.ServicePassword != "" {
		return show(mosquitto.PasswordLine(mosquitto.ServiceUser, string(p.ServicePassword)))
	}
	if p.Units == "" || p.UnitSecret == "" {
		return badUsage("want --units FILE with --unit-secret SECRET, or --service-password SECRET")
	}
	changes, err := readFleetFile(ctx, p.Units)
	if err != nil {
		return err
	}
	units, err := changes.Units()
	if err != nil {
		return fmt.Errorf("%s:\n%w", p.Units, err)
	}
	return p.printUnits(units)
}

// login is a unit's entry in a units file.
type login struct {
	Unit     telematics.Unit `json:"unit"`
	Password string          `json:"password"`
}

func (p passwd) printUnits(fleet []telematics.Vehicle) error {
	logins := map[telematics.VehicleID]login{}
	for _, v := range fleet {
		l := login{Unit: v.Unit, Password: mosquitto.UnitPassword(string(p.UnitSecret), string(v.Unit))}
		logins[v.ID] = l
		if p.Format == "mosquitto" {
			if err := show(mosquitto.PasswordLine(string(l.Unit), l.Password)); err != nil {
				return err
			}
		}
	}
	if p.Format == "mosquitto" {
		return nil
	}
	return show(json.MarshalIndent(logins, "", "  "))
}
