package maintenance

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"motorpool/mosquitto"
	"motorpool/simulator/world"
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
	{"a certificate is revoked before its module has the next one", revokeEarly},
	{"a module gets a certificate instead of its password", moveToCertificate},
	{"a module is removed", removeOne},
}

func reload(r *round, ctx context.Context) error {
	process, err := mosquitto.FindProcess(r.Mosquitto.PIDFile())
	for range 3 {
		err = errors.Join(err, process.Reload())
		world.Pause(ctx, time.Duration(r.random.IntN(100))*time.Millisecond)
	}
	return err
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
	printed, err := r.tool(ctx, "add", string(m.unit), "--protocol", "ovms", "--vehicle-type", "NL", "--server", host)
	if err != nil {
		return err
	}
	password, err := r.password(printed, m.unit)
	if err != nil {
		return err
	}
	if err := r.awaitLogin(ctx, m.unit, password); err != nil {
		return err
	}
	r.start(m, login{password: password})
	r.modules = append(r.modules, m)
	return nil
}

func addByCertificate(r *round, ctx context.Context) error {
	m := r.newModule()
	certificate, err := r.nextCertificate(ctx, m)
	if err != nil {
		return err
	}
	r.start(m, login{certificate: certificate})
	r.modules = append(r.modules, m)
	return nil
}

// nextCertificate gets a module another certificate by rotation. The present one stays valid.
func (r *round) nextCertificate(ctx context.Context, m *module) (*tls.Certificate, error) {
	printed, err := r.tool(ctx, "rotate", string(m.unit), "--protocol", "ovms", "--unit-authority", r.authority())
	if err != nil {
		return nil, err
	}
	return r.enrol(ctx, m.unit, printed)
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
		r.result.Must(guarded, exitCode(err) == refusedCode, "%s: %v", m.unit, err)
		m.stop() // server v3 stop
		args = append(args, "--stopped")
	}
	printed, err := r.tool(ctx, args...)
	if err != nil {
		return err
	}
	password, err := r.password(printed, m.unit)
	if err != nil {
		return err
	}
	if err := r.awaitLogin(ctx, m.unit, password); err != nil {
		return err
	}
	if r.RemoveFirst {
		if err := r.checkLost(ctx, m); err != nil {
			return err
		}
	}
	r.start(m, login{password: password})
	return nil
}

// Exit codes of a command that has done nothing, and of one that has failed (docs/cli.md).
const refusedCode, failedCode = 3, 4

func rotateCertificate(r *round, ctx context.Context) error {
	m := r.pickModule(true)
	if m == nil {
		return addByCertificate(r, ctx)
	}
	certificate, err := r.nextCertificate(ctx, m)
	if err != nil {
		return err
	}
	r.start(m, login{certificate: certificate})
	return r.supersede(ctx, m)
}

// revokeEarly is an operator's mistake: the module has not got its next certificate yet. It keeps
// the one before.
func revokeEarly(r *round, ctx context.Context) error {
	m := r.pickModule(true)
	if m == nil {
		return addByCertificate(r, ctx)
	}
	if _, err := r.nextCertificate(ctx, m); err != nil {
		return err
	}
	err := r.supersede(ctx, m, "--wait", "1s")
	r.result.Must(kept, exitCode(err) == failedCode, "%s: %v", m.unit, err)
	return nil
}

// supersede revokes all certificates of a module but the newest. The tool refuses while the module
// is not connected.
func (r *round) supersede(ctx context.Context, m *module, flags ...string) (err error) {
	args := append(r.service("remove", "--superseded", "--unit-authority", r.authority(), string(m.unit)), flags...)
	return errors.Join(world.Eventually(ctx, backWithin, string(m.unit)+" is connected", func(ctx context.Context) bool {
		_, err = r.tool(ctx, args...)
		return exitCode(err) != refusedCode
	}), err)
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
	certificate, err := r.nextCertificate(ctx, m)
	if err != nil {
		return err
	}
	r.start(m, login{certificate: certificate})
	return nil
}

// checkLost checks a module whose credential was removed before it has another one.
func (r *round) checkLost(ctx context.Context, m *module) error {
	if err := world.Eventually(ctx, backWithin, string(m.unit)+" is disconnected", func(context.Context) bool { return !m.Connected() }); err != nil {
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
	_, err := r.tool(ctx, r.service("remove", "--unit-authority", r.authority(), string(m.unit))...)
	m.stop()
	return err
}
