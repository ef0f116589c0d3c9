package maintenance

import (
	"context"
	"crypto/tls"
	"fmt"
	"regexp"
	"time"

	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/simulator/ovms"
	"motorpool/telematics"
)

// speed is how many seconds pass for a module in one: it waits for 30 s or 60 s before it
// reconnects.
const speed = 40

// module is a unit that may log in, and its simulated device.
type module struct {
	*ovms.Module
	unit        telematics.Unit
	certificate *tls.Certificate // that it logs in with; nil: with a password
	stop        func()
}

// start switches the device on with a password or a certificate; one that ran before is stopped
// first, as by "server v3 stop".
func (r *round) start(m *module, password string, certificate *tls.Certificate) {
	if m.stop != nil {
		m.stop()
	}
	config := ovms.Config{
		Unit: m.unit, Password: password, Broker: r.Mosquitto.UnitsURL(), TLS: r.servers.Trusted(), Speed: speed,
		StableWait: 3 * time.Second,
		Body:       simulator.ElectricCar(simulator.Point{Latitude: 48.1374, Longitude: 11.5755}),
	}
	if m.certificate = certificate; m.certificate != nil {
		config.Broker, config.TLS.Certificates = r.Mosquitto.CertificatesURL(), []tls.Certificate{*certificate}
	}
	if m.Module == nil {
		r.started = append(r.started, m)
	}
	m.Module = ovms.New(config)
	device := m.Module
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = device.Run(ctx) // which ends with its context alone
	}()
	m.stop = func() { cancel(); <-ended }
}

func (r *round) stopAll() {
	for _, m := range r.started {
		m.stop()
	}
}

// pickModule returns a module that has a certificate, or a password; nil: none is left.
func (r *round) pickModule(certified bool) *module {
	for _, i := range r.random.Perm(len(r.modules)) {
		if (r.modules[i].certificate != nil) == certified {
			return r.modules[i]
		}
	}
	return nil
}

// newPassword runs the tool, and returns the password of a unit that it has printed, once Mosquitto
// accepts it, as an operator tries it out before the module does.
func (r *round) newPassword(ctx context.Context, unit telematics.Unit, args ...string) (string, error) {
	printed, err := r.tool(ctx, args...)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^` + string(unit) + ` (\S{32})$`).FindStringSubmatch(printed)
	if found == nil {
		return "", fmt.Errorf("no password of %s in what the tool has printed", unit)
	}
	r.InUse.Add("credential of a module", found[1])
	radio := simulator.MQTT{Broker: r.Mosquitto.UnitsURL(), TLS: r.servers.Trusted()}
	return found[1], world.Eventually(ctx, time.Minute, "Mosquitto has read the password of "+string(unit), func(ctx context.Context) bool {
		c, err := radio.Dial(ctx, simulator.Login{Unit: unit, Password: found[1]}, func(simulator.Message) {})
		if err == nil {
			c.Cut()
		}
		return err == nil
	})
}
