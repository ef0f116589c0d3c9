package maintenance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"motorpool/lab/world"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

// step is one piece of maintenance.
type step struct {
	name string
	do   func(*round, context.Context) error
}

var steps = []step{
	{"Mosquitto reads its files again, three times", reload},
	{"Mosquitto is killed and started again", restart},
	{"a module is added with a password", addByPassword},
	{"a module is added with a certificate", addByCertificate},
	{"a password is rotated", rotatePassword},
	{"a certificate is rotated", rotateCertificate},
	{"a module gets a certificate instead of its password", moveToCertificate},
	{"a module is removed", removeOne},
}

func reload(r *round, ctx context.Context) (err error) {
	for range 3 {
		err = errors.Join(err, reloadOnce(r))
		world.Pause(ctx, time.Duration(r.random.IntN(100))*time.Millisecond)
	}
	return err
}

func reloadOnce(r *round) error {
	process, err := mosquitto.FindProcess(r.Mosquitto.PIDFile())
	if err != nil {
		return err
	}
	return process.Reload()
}

func restart(r *round, ctx context.Context) error {
	if err := r.Mosquitto.Kill(); err != nil {
		return err
	}
	world.Pause(ctx, time.Duration(r.random.IntN(2000))*time.Millisecond)
	return r.Mosquitto.Restart()
}

// newModule returns one that is not switched on.
func (r *round) newModule() *module {
	r.added++
	return &module{unit: telematics.Unit(fmt.Sprintf("OVMS-%d", r.added))}
}

// host is the name that modules are configured with.
const host = "mqtt.example.com"

func addByPassword(r *round, ctx context.Context) error {
	m := r.newModule()
	password, err := r.newPassword(
		ctx, m.unit, "add", string(m.unit), "--protocol", "ovms", "--vehicle-type", "NL", "--server", host,
	)
	if err != nil {
		return err
	}
	r.start(m, password, nil)
	r.modules = append(r.modules, m)
	return nil
}

func addByCertificate(r *round, _ context.Context) error {
	m := r.newModule()
	r.modules = append(r.modules, m)
	return r.certify(m)
}

// certify switches a module on with a new certificate.
func (r *round) certify(m *module) error {
	certificate, err := r.issuer.Login(string(m.unit), time.Hour)
	if err != nil {
		return err
	}
	r.start(m, "", &certificate)
	return nil
}

func rotatePassword(r *round, ctx context.Context) error {
	m := r.pickModule(false)
	if m == nil {
		return addByPassword(r, ctx)
	}
	args := []string{"rotate", string(m.unit)}
	if !r.RemoveFirst {
		args = r.service(args...)
		_, err := r.tool(ctx, args...) // while it runs
		r.Must(guarded, exitCode(err) == refusedCode, "%s: %v", m.unit, err)
		m.stop() // server v3 stop
		args = append(args, "--stopped")
	}
	password, err := r.newPassword(ctx, m.unit, args...)
	if err != nil {
		return err
	}
	if r.RemoveFirst {
		if err := r.checkLost(ctx, m); err != nil {
			return err
		}
	}
	r.start(m, password, nil)
	return nil
}

// refusedCode is the exit code of a command that has done nothing (docs/cli.md).
const refusedCode = 3

// rotateCertificate revokes a certificate once its module uses the next one.
func rotateCertificate(r *round, ctx context.Context) error {
	m := r.pickModule(true)
	if m == nil {
		return addByCertificate(r, ctx)
	}
	before := m.certificate
	if err := r.certify(m); err != nil {
		return err
	}
	if err := m.await(ctx, true); err != nil {
		return err
	}
	return errors.Join(r.revoke(before), reloadOnce(r))
}

// revoke adds a certificate to the issuer's list of those that are revoked.
func (r *round) revoke(certificate *tls.Certificate) error {
	r.revoked = append(r.revoked, *certificate)
	return r.issuer.WriteRevocations(r.crl(), r.revoked...)
}

// exitCode returns how the tool has ended; 0: without an error.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func moveToCertificate(r *round, ctx context.Context) error {
	m := r.pickModule(false)
	if m == nil {
		return addByCertificate(r, ctx)
	}
	if r.RemoveFirst {
		if _, err := r.tool(ctx, r.service("remove", string(m.unit))...); err != nil {
			return err
		}
		if err := r.checkLost(ctx, m); err != nil {
			return err
		}
	}
	return r.certify(m)
}

// await waits until a module is connected, or is not.
func (m *module) await(ctx context.Context, connected bool) error {
	what := fmt.Sprintf("%s is connected: %t", m.unit, connected)
	return world.Eventually(ctx, backWithin, what, func(context.Context) bool { return m.Connected() == connected })
}

// checkLost checks a module whose credential was removed before it has another one.
func (r *round) checkLost(ctx context.Context, m *module) error {
	if err := m.await(ctx, false); err != nil {
		return err
	}
	r.check(ctx, "its credential was removed before the next one was added")
	return nil
}

// removeOne removes a module, whose car leaves the fleet. If only half of them are left, it adds
// one instead.
func removeOne(r *round, ctx context.Context) error {
	if len(r.modules) <= r.Modules/2 {
		return addByPassword(r, ctx)
	}
	i := r.random.IntN(len(r.modules))
	m := r.modules[i]
	r.modules = append(r.modules[:i:i], r.modules[i+1:]...)
	if m.certificate != nil {
		if err := r.revoke(m.certificate); err != nil {
			return err
		}
	}
	_, err := r.tool(ctx, r.service("remove", string(m.unit))...)
	m.stop()
	return err
}
