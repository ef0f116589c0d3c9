package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"motorpool/broker/link"
	"motorpool/mosquitto"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

type rotateUnit struct {
	unitAccess
	credentials
	serviceAccount
	Protocol telematics.Protocol `default:"v1" env:"-" placeholder:"NAME" help:"${rotate_protocol}."`
	Stopped  bool                `env:"-" help:"${rotate_stopped}."`
	serials
}

// Run replaces passwords. OVMS modules, whose firmware never reconnects after a refused login, must
// have been stopped.
func (u rotateUnit) Run(ctx context.Context) error {
	if err := u.check(); err != nil {
		return err
	}
	if _, ok := deviceSettings[u.Protocol]; !ok && !u.Protocol.Means(telematics.DefaultProtocol) {
		return badUsage("--protocol %s: no unit speaks it", u.Protocol)
	}
	modules, online, err := u.modules(ctx, u.Units)
	if u.Protocol == ovms.Protocol {
		modules = u.Units
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w\nnothing was changed", err)
	case len(modules) == 0:
		return u.replace(ctx)
	case len(modules) < len(u.Units):
		return refused("OVMS modules are rotated separately: %s; nothing was changed", strings.Join(modules, ", "))
	case !u.Stopped:
		return refused(ovmsRefusal, strings.Join(u.Units, " "))
	case len(online) > 0:
		return refused(
			"still connected, so not stopped: %s; nothing was changed (in the module's shell: server v3 stop)",
			strings.Join(online, ", "),
		)
	}
	if err := u.replace(ctx); err != nil {
		return err
	}
	return each(u.Units, func(name string) error { return printNewPassword(stdout, name) })
}

// replace gives the units new passwords.
func (u rotateUnit) replace(ctx context.Context) error {
	return u.set(ctx, u.unitAccess, u.Units, func(passwords *mosquitto.Passwords) error {
		return each(u.Units, func(name string) error {
			if !passwords.Has(name) {
				return fmt.Errorf("unit %s has no password; for one: motorpool unit add %s", name, name)
			}
			return nil
		})
	})
}

// modules returns which of the units are OVMS modules, according to their retained messages, and
// which of those are connected.
func (s serviceAccount) modules(ctx context.Context, units []string) (modules, online []string, err error) {
	secured, err := s.tls()
	if err != nil {
		return nil, nil, badUsage("%w", err)
	}
	config := link.Config{Username: s.MQTTUsername, Password: string(s.MQTTPassword), TLS: secured}
	for _, config.Nodes = range link.ParseShards(s.MQTTURL) {
		for _, name := range units {
			speaks, status, err := link.Presence(ctx, config, telematics.Unit(name))
			if err != nil {
				return nil, nil, fmt.Errorf("presence of unit %s: %w", name, err)
			}
			if speaks == ovms.Protocol && !slices.Contains(modules, name) {
				modules = append(modules, name)
			}
			if speaks == ovms.Protocol && status == telematics.Online {
				online = append(online, name)
			}
		}
	}
	return modules, online, nil
}
