package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/mosquitto"
	"motorpool/store"
	"motorpool/telematics"
)

type keys struct {
	New    newKey    `cmd:"" help:"Print a new private signing key (Ed25519), as JWKS."`
	Public publicKey `cmd:"" help:"Print the public halves of a private JWKS: what units, or the service, must know."`
}

type newKey struct{}

func (newKey) Run() error {
	key, err := telematics.NewSigningKey()
	if err != nil {
		return err
	}
	return show(telematics.EncodeSigningKeys(key))
}

type publicKey struct {
	File string `arg:"" type:"existingfile" help:"Private JWKS."`
}

func (p publicKey) Run() error {
	private, err := readKeys(p.File)
	if err != nil {
		return err
	}
	ring := telematics.Keyring{}
	for _, key := range private {
		for id, public := range key.Keyring() {
			ring[id] = public
		}
	}
	return show(telematics.EncodeKeyring(ring))
}

func readKeys(file string) ([]telematics.SigningKey, error) {
	jwks, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	keys, err := telematics.ParseSigningKeys(jwks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (want what 'motorpool keys new' prints)", file, err)
	}
	return keys, nil
}

// show prints a text, unless it could not be made.
func show[T string | []byte](text T, err error) error {
	if err == nil {
		fmt.Println(string(text))
	}
	return err
}

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
	private, err := readKeys(t.Key)
	if err != nil {
		return err
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
	}.Mint(private[0])
	return show(minted, err)
}

type passwd struct {
	Units           string     `type:"existingfile" placeholder:"FILE" help:"Fleet file whose units get a password."`
	UnitSecret      app.Secret `placeholder:"SECRET" help:"Secret from which the units' passwords are derived, as 'simulate --secret' does."`
	ServicePassword app.Secret `placeholder:"SECRET" help:"Print the service's line instead."`
	Format          string     `enum:"mosquitto,json" default:"mosquitto" help:"mosquitto: a password file; json: what 'simulate --units' reads (default ${default})."`
}

func (p passwd) Run() error {
	forUnits := p.Units != "" || p.UnitSecret != "" || p.Format != "mosquitto"
	if p.ServicePassword != "" && forUnits {
		return fmt.Errorf("want either --units FILE with --unit-secret SECRET, or --service-password SECRET (is MOTORPOOL_SERVICE_PASSWORD or MOTORPOOL_UNIT_SECRET set?)")
	}
	if p.ServicePassword != "" {
		return show(mosquitto.PasswordLine(mosquitto.ServiceUser, string(p.ServicePassword)))
	}
	if p.Units == "" || p.UnitSecret == "" {
		return fmt.Errorf("want --units FILE with --unit-secret SECRET, or --service-password SECRET")
	}
	file, err := os.Open(p.Units)
	if err != nil {
		return err
	}
	defer file.Close()
	fleet, err := store.ParseFleetFile(file)
	if err != nil {
		return fmt.Errorf("%s:\n%w", p.Units, err)
	}
	return p.printUnits(fleet.Vehicles)
}

// login is a unit's entry in a units file.
type login struct {
	Unit     telematics.Unit `json:"unit"`
	Password string          `json:"password"`
}

func (p passwd) printUnits(vehicles []telematics.Vehicle) error {
	logins := map[telematics.VehicleID]login{}
	for _, v := range vehicles {
		if v.Unit == "" {
			continue
		}
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
