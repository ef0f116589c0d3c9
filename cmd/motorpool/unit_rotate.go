package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"motorpool/cmd/internal/enrolment"
	"motorpool/mosquitto"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

type rotateUnit struct {
	unitAccess
	credentials
	unitAuthority
	serviceAccount
	Protocol telematics.Protocol `default:"v1" env:"-" placeholder:"NAME" help:"What the units speak. With --mqtt-url, OVMS modules are recognised without it (default ${default})."`
	Stopped  bool                `env:"-" help:"The OVMS modules were stopped in their shells ('server v3 stop'), so that none logs in meanwhile."`
	serials
}

// These are how long the code and the certificate of a rotated module last.
const (
	rotationCode        = 24 * time.Hour
	rotationCertificate = 365 * 24 * time.Hour
)

// Run replaces the passwords, or, of OVMS modules, adds a credential: their firmware never connects
// again after a refused login.
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
	return each(u.Units, func(name string) error { return printNewPassword(os.Stdout, name) })
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

// certify prints codes for certificates. What the modules have stays valid.
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
		if err := printNewCertificate(os.Stdout, name, code); err != nil {
			return err
		}
	}
	return nil
}
