package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"motorpool/broker/link"
	"motorpool/internal/enrolment"
	"motorpool/mosquitto"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

type rotateUnit struct {
	unitAccess
	credentials
	unitAuthority
	serviceAccount
	Protocol telematics.Protocol `default:"v1" env:"-" placeholder:"NAME" help:"Protocol of the units. With --mqtt-url, OVMS modules are recognised without it (default ${default})."`
	Stopped  bool                `env:"-" help:"The OVMS modules were stopped in their shells ('server v3 stop'), so that none logs in meanwhile."`
	serials
}

// These are how long the code and the certificate of a rotated module last.
const (
	rotationCode        = 24 * time.Hour
	rotationCertificate = 365 * 24 * time.Hour
)

// Run replaces passwords. OVMS modules, whose firmware never reconnects after a refused login, get
// a certificate in addition to the one in use, or must have been stopped.
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
	case u.UnitAuthority != "":
		return u.certify(ctx)
	case !u.Stopped:
		return refused(ovmsRefusal, strings.Join(u.Units, " "))
	case len(online) > 0:
		return refused("still connected, so not stopped: %s; nothing was changed (in the module's shell: server v3 stop)", strings.Join(online, ", "))
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

// certify prints codes for certificates. The certificates of the modules stay valid.
func (u rotateUnit) certify(ctx context.Context) error {
	authority, err := u.open()
	if err != nil {
		return err
	}
	for _, name := range u.Units {
		code, err := authority.NewCode(ctx, telematics.Unit(name), enrolment.CodeConfig{Lifetime: rotationCode, CertificateLifetime: rotationCertificate})
		if err != nil {
			return err
		}
		if err := printNewCertificate(stdout, name, code); err != nil {
			return err
		}
	}
	return nil
}

// lookEvery is the interval at which awaitModules polls the presence of modules.
const lookEvery = 200 * time.Millisecond

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

// awaitModules waits until modules are connected again, at most within, and returns those that are
// not.
func (s serviceAccount) awaitModules(ctx context.Context, modules []string, within time.Duration) (missing []string, err error) {
	for deadline := time.Now().Add(within); ; {
		_, online, err := s.modules(ctx, modules)
		if err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(slices.Clone(modules), func(name string) bool { return slices.Contains(online, name) })
		if len(missing) == 0 || time.Now().After(deadline) {
			return missing, nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return missing, nil // tryOut restores their certificates
		}
	}
}

// tryOut waits until the modules whose superseded certificates were revoked are connected again,
// which proves that they use the newer ones. It restores the certificates of modules that are not
// connected in time; before are the certificates that were valid before the revocation.
func (u removeUnit) tryOut(ctx context.Context, modules []string, before []enrolment.Certificate, broker reloader) error {
	missing, err := u.awaitModules(ctx, modules, u.Wait)
	if err != nil {
		missing = modules
	}
	if len(missing) == 0 {
		return nil
	}
	var serials []string
	for _, c := range before {
		if slices.Contains(missing, string(c.Unit)) {
			serials = append(serials, c.Serial)
		}
	}
	authority, failure := u.open()
	if failure == nil {
		failure = authority.Restore(context.WithoutCancel(ctx), serials...)
	}
	if failure == nil {
		failure = broker.reload()
	}
	if failure != nil {
		return fmt.Errorf("not connected again, and not restored: %s: %w", strings.Join(missing, ", "), failure)
	}
	if err == nil {
		err = fmt.Errorf("not connected within %s with the newest certificate", telematics.Words(u.Wait))
	}
	return fmt.Errorf("%s: %w; the certificates before are valid again", strings.Join(missing, ", "), err)
}

// valid returns the certificates that are neither revoked nor expired.
func valid(certificates []enrolment.Certificate) []enrolment.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(c enrolment.Certificate) bool {
		return c.Revoked != nil || time.Now().After(c.Expires)
	})
}
