package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"motorpool/broker/link"
	"motorpool/internal/app"
	"motorpool/internal/keyfile"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

// serviceAccount is how the service logs in at the MQTT broker.
type serviceAccount struct {
	MQTTURL      []string   `name:"mqtt-url" sep:"none" placeholder:"URL" help:"${remove_mqtt_url}."`
	MQTTUsername string     `name:"mqtt-username" default:"motorpool" placeholder:"NAME" help:"The service's account at the MQTT broker."`
	MQTTPassword app.Secret `name:"mqtt-password" default:"" placeholder:"SECRET" help:"${mqtt_password}."`
	MQTTCA       string     `name:"mqtt-ca" placeholder:"FILE" help:"${mqtt_ca}."`
	MQTTCert     string     `name:"mqtt-cert" placeholder:"FILE" help:"${remove_mqtt_cert}."`
	MQTTKey      string     `name:"mqtt-key" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
}

// displace ends the units' open connections, and shows them as offline.
func (s serviceAccount) displace(ctx context.Context, units []string) error {
	secured, err := s.tls()
	if err != nil {
		return err
	}
	config := link.Config{Username: s.MQTTUsername, Password: string(s.MQTTPassword), TLS: secured}
	for _, config.Nodes = range link.ParseShards(s.MQTTURL) {
		for _, name := range units {
			left, err := link.Displace(ctx, config, telematics.Unit(name))
			if err != nil {
				return fmt.Errorf(
					"%w\nthe access of %s is removed, but a connection with a certificate stays open until it breaks, "+
						"and retained messages may be left: repeat the command",
					err, name,
				)
			}
			if len(left) > 0 {
				hint(
					"%d retained messages of %s stay at the MQTT broker, where the service may not write, and say nothing to it: %s",
					len(left), name, strings.Join(left[:min(len(left), 5)], ", "),
				)
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
	serviceAccount
	serials
}

// Run removes passwords and ends connections, also those of units that have certificates.
func (u removeUnit) Run(ctx context.Context) error {
	if err := u.check(); err != nil {
		return err
	}
	if _, err := u.tls(); err != nil { // before anything is changed
		return err
	}
	broker, err := u.broker()
	if err != nil {
		return err
	}
	if err := u.forget(ctx); err != nil {
		if broker.process != nil && exitCode(err) == exitRefused {
			// A run that was killed may have changed the file without a reload of Mosquitto.
			err = errors.Join(err, broker.reload())
		}
		return err
	}
	fmt.Fprintln(stdout, "removed:", strings.Join(u.Units, ", "))
	if err := broker.reload(); err != nil {
		return err
	}
	if broker.process == nil { // with the former files, the units would connect again
		hint("Connections with a certificate stay open until they break; with --mqtt-url and --mosquitto-pid-file this command ends them.")
		return nil
	}
	return u.displace(ctx, u.Units)
}

// forget removes the units' passwords. It fails if a unit has none, except with --mqtt-url: a unit
// may have a certificate, and a run that was killed can be repeated.
func (u removeUnit) forget(ctx context.Context) error {
	passwords, err := u.readPasswords(len(u.MQTTURL) > 0)
	if err != nil {
		return err
	}
	if len(u.MQTTURL) == 0 {
		if err := each(u.Units, func(name string) error {
			if !passwords.Has(name) {
				return fmt.Errorf(
					"unit %s has nothing to take away; nothing was changed (motorpool unit list); one with a certificate: give --mqtt-url",
					name,
				)
			}
			return nil
		}); err != nil {
			return failure{exitRefused, err}
		}
	}
	if !slices.ContainsFunc(u.Units, passwords.Has) {
		return nil
	}
	return u.write(ctx, func(passwords *mosquitto.Passwords) error {
		for _, name := range u.Units {
			passwords.Remove(name)
		}
		return nil
	})
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

type listUnits struct {
	unitAccess
	presentation
}

func (l listUnits) Run() error {
	passwords, err := l.readPasswords(false)
	if err != nil {
		return err
	}
	type listed struct {
		Unit string `json:"unit"`
	}
	list := []listed{}
	for _, name := range slices.Sorted(slices.Values(passwords.Users())) {
		list = append(list, listed{name})
	}
	return l.printValue(list, []column{"UNIT unit"})
}
