package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"motorpool/broker/link"
	"motorpool/cmd/internal/enrolment"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

// lookEvery is between two looks for modules that come back.
const lookEvery = 200 * time.Millisecond

// modules returns which of the units are OVMS modules, by what they retain, and which of those are
// connected.
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

// awaitModules waits until modules are connected again, and returns those that are not.
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
			return missing, nil // what was revoked is restored
		}
	}
}

// tryOut waits until the modules whose superseded certificates were revoked are connected again,
// which they can only be with the newer ones. The certificates of those that are not become valid
// again: before are those that were valid before.
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
		err = fmt.Errorf("not connected within %v with the newest certificate", u.Wait)
	}
	return fmt.Errorf("%s: %w; the certificates before are valid again", strings.Join(missing, ", "), err)
}

// valid returns the certificates that are neither revoked nor expired.
func valid(certificates []enrolment.Certificate) []enrolment.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(c enrolment.Certificate) bool {
		return c.Revoked != nil || time.Now().After(c.Expires)
	})
}
