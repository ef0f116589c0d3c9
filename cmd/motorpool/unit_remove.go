package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"motorpool/broker/link"
	"motorpool/internal/app"
	"motorpool/internal/enrolment"
	"motorpool/internal/keyfile"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

// serviceAccount is how the service logs in at the MQTT broker.
type serviceAccount struct {
	MQTTURL      []string   `name:"mqtt-url" sep:"none" placeholder:"URL" help:"Service's listener of the MQTT broker, to end the units' open connections and mark them offline; several as for 'motorpool serve' (default none: connections with a certificate stay open)."`
	MQTTUsername string     `name:"mqtt-username" default:"motorpool" placeholder:"NAME" help:"Account of the service at the MQTT broker (default ${default})."`
	MQTTPassword app.Secret `name:"mqtt-password" default:"" placeholder:"SECRET" help:"Its password; better set by the environment (default none)."`
	MQTTCA       string     `name:"mqtt-ca" placeholder:"FILE" help:"Certificates that sign the MQTT broker's, as PEM (default the system's)."`
	MQTTCert     string     `name:"mqtt-cert" placeholder:"FILE" help:"Certificate of the service at the MQTT broker, as PEM (default none)."`
	MQTTKey      string     `name:"mqtt-key" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
}

// displace ends the units' open connections. Those of removed units are offline from then on.
func (s serviceAccount) displace(ctx context.Context, units []string, removed bool) error {
	secured, err := s.tls()
	if err != nil {
		return err
	}
	config := link.Config{Username: s.MQTTUsername, Password: string(s.MQTTPassword), TLS: secured}
	for _, config.Nodes = range link.ParseShards(s.MQTTURL) {
		for _, name := range units {
			left, err := link.Displace(ctx, config, telematics.Unit(name), removed)
			if err != nil {
				return fmt.Errorf("%w\nthe access of %s is removed, but a connection with a certificate stays open until it breaks, and retained messages may be left: repeat the command", err, name)
			}
			if len(left) > 0 {
				hint("%d retained messages of %s stay at the MQTT broker, where the service may not write, and say nothing to it: %s", len(left), name, strings.Join(left[:min(len(left), 5)], ", "))
			}
		}
	}
	return nil
}

func (s serviceAccount) tls() (*tls.Config, error) {
	roots, err := keyfile.Authorities(s.MQTTCA)
	if err != nil {
		return nil, badUsage("--mqtt-ca: %w", err)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if s.MQTTCert != "" || s.MQTTKey != "" {
		pair, err := tls.LoadX509KeyPair(s.MQTTCert, s.MQTTKey)
		if err != nil {
			return nil, badUsage("--mqtt-cert, --mqtt-key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

type removeUnit struct {
	unitAccess
	unitAuthority
	serviceAccount
	Superseded bool          `env:"-" help:"Only certificates that a newer enrolment of the same unit, or a renewal of it, has replaced."`
	Wait       time.Duration `env:"-" default:"3m" placeholder:"DURATION" help:"With --superseded: how long an OVMS module may take to connect with the newer one, before those that were revoked become valid again (default ${default})."`
	serials
}

func (u removeUnit) Run(ctx context.Context) error {
	if err := u.check(); err != nil {
		return err
	}
	if u.Superseded && u.UnitAuthority == "" {
		return badUsage("--superseded: only with --unit-authority")
	}
	if _, err := u.tls(); err != nil { // before anything is changed
		return err
	}
	broker, err := u.broker()
	if err != nil {
		return err
	}
	certified, err := u.mayRemove()
	if broker.process != nil && exitCode(err) == exitRefused {
		// A run that was killed may have changed the files without a reload of Mosquitto.
		return errors.Join(err, broker.reload())
	}
	if err != nil {
		return err
	}
	modules, before, err := u.superseding(ctx)
	if err != nil {
		return err
	}
	// Certificates first: a code must not give a removed unit another one.
	if err := u.revoke(ctx); err != nil {
		return err
	}
	if !u.Superseded {
		if err := u.forget(ctx); err != nil {
			return err
		}
	}
	if len(modules) == 0 {
		fmt.Fprintln(stdout, "removed:", strings.Join(u.Units, ", "))
	}
	if err := broker.reload(); err != nil {
		return err
	}
	switch {
	case len(modules) > 0:
		if err := errors.Join(u.displace(ctx, u.Units, false), u.tryOut(ctx, modules, before, broker)); err != nil {
			return err
		}
		fmt.Fprintln(stdout, "removed:", strings.Join(u.Units, ", "))
	case len(u.MQTTURL) > 0 && broker.process != nil:
		return u.displace(ctx, u.Units, !u.Superseded)
	case len(certified) > 0:
		hint("Open connections with a certificate stay until they break: %s.\nRepeat the command with --mqtt-url and --mosquitto-pid-file to end them.", strings.Join(certified, ", "))
	}
	return nil
}

// superseding returns the OVMS modules whose superseded certificates are to be revoked, and all
// certificates that are valid. It fails if a module is not connected: whether it uses the newest
// one could not be verified.
func (u removeUnit) superseding(ctx context.Context) (modules []string, before []enrolment.Certificate, err error) {
	if !u.Superseded || len(u.MQTTURL) == 0 || u.MosquittoPIDFile == "" {
		return nil, nil, nil
	}
	modules, online, err := u.modules(ctx, u.Units)
	if err != nil {
		return nil, nil, fmt.Errorf("%w\nnothing was changed", err)
	}
	if len(online) < len(modules) {
		return nil, nil, refused("not all connected, so it cannot be seen that they use the newest certificate: %s; nothing was changed", strings.Join(modules, ", "))
	}
	certificates, _, err := u.issued()
	return modules, valid(certificates), err
}

// mayRemove returns the units that have had certificates. It fails if a unit has no credentials to
// remove. Revoked certificates count, and with --mqtt-url what a unit without credentials has left
// at the MQTT broker, so that the command can be repeated.
func (u removeUnit) mayRemove() (certified []string, err error) {
	passwords, err := u.passwords()
	if err != nil {
		return nil, err
	}
	certificates, pending, err := u.issued()
	if err != nil {
		return nil, err
	}
	err = each(u.Units, func(name string) error {
		known := !u.Superseded && (len(u.MQTTURL) > 0 || passwords.Has(name) || slices.Contains(pending, telematics.Unit(name)))
		if slices.ContainsFunc(certificates, func(c enrolment.Certificate) bool { return string(c.Unit) == name }) {
			certified, known = append(certified, name), true
		}
		if !known {
			return fmt.Errorf("unit %s has nothing to take away; nothing was changed (motorpool unit list)", name)
		}
		return nil
	})
	if err != nil {
		return nil, failure{exitRefused, err}
	}
	return certified, nil
}

// passwords reads the password file, which may be missing if units have certificates.
func (u removeUnit) passwords() (mosquitto.Passwords, error) {
	return u.readPasswords(u.UnitAuthority != "")
}

// readPasswords reads the password file. If it is optional, a missing one counts as empty.
func (a unitAccess) readPasswords(optional bool) (mosquitto.Passwords, error) {
	file, err := os.ReadFile(a.UnitsPasswd)
	switch {
	case optional && errors.Is(err, fs.ErrNotExist):
		return mosquitto.Passwords{}, nil
	case err != nil:
		return mosquitto.Passwords{}, a.explain(err)
	}
	return a.parse(file)
}

func (u removeUnit) revoke(ctx context.Context) error {
	if u.UnitAuthority == "" {
		return nil
	}
	authority, err := u.open()
	if err != nil {
		return err
	}
	which := enrolment.Everything
	if u.Superseded {
		which = enrolment.Superseded
	}
	units := make([]telematics.Unit, len(u.Units))
	for i, name := range u.Units {
		units[i] = telematics.Unit(name)
	}
	_, err = authority.Revoke(ctx, which, units...)
	return err
}

// forget removes the units' passwords.
func (u removeUnit) forget(ctx context.Context) error {
	passwords, err := u.passwords()
	if err != nil || !slices.ContainsFunc(u.Units, passwords.Has) {
		return err
	}
	return u.write(ctx, func(passwords *mosquitto.Passwords) error {
		for _, name := range u.Units {
			passwords.Remove(name)
		}
		return nil
	})
}

type listUnits struct {
	unitAccess
	unitAuthority
	presentation
}

// listedUnit is a unit that may log in, in JSON.
type listedUnit struct {
	Unit         telematics.Unit `json:"unit"`
	Password     bool            `json:"password"`
	Certificates int             `json:"certificates"` // that are valid
	Expires      *time.Time      `json:"expires"`      // the last of them
	Code         bool            `json:"code"`         // one was printed, and not used
}

func (l listUnits) Run() error {
	passwords, err := l.readPasswords(l.UnitAuthority != "")
	if err != nil {
		return err
	}
	certificates, pending, err := l.issued()
	if err != nil {
		return err
	}
	units := map[telematics.Unit]*listedUnit{}
	row := func(name telematics.Unit) *listedUnit {
		if units[name] == nil {
			units[name] = &listedUnit{Unit: name}
		}
		return units[name]
	}
	for _, name := range passwords.Users() {
		row(telematics.Unit(name)).Password = true
	}
	for _, c := range certificates {
		if c.Revoked != nil || time.Now().After(c.Expires) {
			continue
		}
		r := row(c.Unit)
		r.Certificates++
		if r.Expires == nil || c.Expires.After(*r.Expires) {
			r.Expires = &c.Expires
		}
	}
	for _, name := range pending {
		row(name).Code = true
	}
	list := make([]*listedUnit, 0, len(units))
	for _, r := range units {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *listedUnit) int { return strings.Compare(string(a.Unit), string(b.Unit)) })
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return l.print(text, []column{{"UNIT", "unit"}, {"PASSWORD", "password"}, {"CERTIFICATES", "certificates"}, {"EXPIRES", "expires"}, {"CODE", "code"}})
}
