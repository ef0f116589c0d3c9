package maintenance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"motorpool/simulator/devstack"
)

func (r *round) crl() string { return r.Path("units.crl") }

func (r *round) makeAuthorities(context.Context) (err error) {
	if r.servers, err = devstack.NewAuthority(r.Path("servers")); err != nil {
		return err
	}
	if r.issuer, err = devstack.NewAuthority(r.Path("issuer")); err != nil {
		return err
	}
	return r.issuer.WriteRevocations(r.crl())
}

func (r *round) startMosquitto(context.Context) error {
	pair, err := r.servers.Issue("mqtt")
	if err != nil {
		return err
	}
	if r.Mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: r.Path("mosquitto"), ServicePassword: r.ServicePassword, CertFile: pair.CertFile, KeyFile: pair.KeyFile,
		UnitsCA: r.issuer.CAFile, UnitsCRL: r.crl(), Logger: r.LogFile("mosquitto"),
	}); err != nil {
		return err
	}
	r.OnClose(r.Mosquitto.Close)
	return nil
}

// addModules lets the first modules in; every third one with a certificate.
func (r *round) addModules(ctx context.Context) error {
	for n := range r.Modules {
		add := addByPassword
		if n%3 == 2 {
			add = addByCertificate
		}
		if err := add(r, ctx); err != nil {
			return err
		}
	}
	r.check(ctx, "the beginning")
	return nil
}

// service are the settings by which the tool recognises modules, and ends their connections.
func (r *round) service(args ...string) []string {
	return append(args, "--mqtt-url", r.Mosquitto.ServiceURL(), "--mqtt-password", r.ServicePassword)
}

// tool runs "motorpool unit" with the settings of an operator at Mosquitto's machine.
func (r *round) tool(ctx context.Context, args ...string) (printed string, err error) {
	cmd := exec.CommandContext(ctx, r.Binary, append([]string{"unit"}, args...)...)
	cmd.Env = append(
		os.Environ(), "MOTORPOOL_UNITS_PASSWD="+r.Mosquitto.UnitsPasswords(),
		"MOTORPOOL_MOSQUITTO_PID_FILE="+r.Mosquitto.PIDFile(),
	)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("motorpool unit %s: %w: %s", args[0], err, exit.Stderr)
	}
	return string(out), err
}
