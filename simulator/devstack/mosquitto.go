package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"motorpool/mosquitto"
)

// MosquittoConfig configures a Mosquitto and its accounts.
type MosquittoConfig struct {
	Dir string // where its configuration and its retained messages lie; created if need be

	Units map[string]string // the units' passwords

	ServicePassword string // of mosquitto.ServiceUser. Defaults to none: the service cannot connect

	// GatewayPassword lets the account GatewayUser read every topic, and act for every unit, on the
	// service's listener. Production has no such account. Defaults to none.
	GatewayPassword string

	// MaxUnitConnections replaces max_connections of the units' listener. Defaults to that of
	// mosquitto.conf.
	MaxUnitConnections int

	// CertFile and KeyFile are for TLS on the units' listener. Defaults to no TLS: the broker is on
	// loopback.
	CertFile, KeyFile string

	// ServiceTLS is for TLS on the service's listener. Defaults to no TLS.
	ServiceTLS *ServerTLS

	// UnitsCA and UnitsCRL open the listener of units that log in with certificates. It needs
	// CertFile and KeyFile. Defaults to none.
	UnitsCA, UnitsCRL string

	Logger *slog.Logger // Defaults to silence
}

// GatewayUser is an account of tests and measurements. It may read all topics, and publish those of
// units of protocol v1, so that a fleet needs no connection for each. It may also use the topics
// below bench/, for measurements without the service.
const GatewayUser = "gateway"

// Mosquitto is the real broker with the production configuration, on 127.0.0.1. It can be frozen,
// killed and restarted.
type Mosquitto struct {
	*child
	cfg                    MosquittoConfig
	unitsPort, servicePort int
	certificatesPort       int // 0: none
}

// StartMosquitto starts the broker, and returns when it accepts connections. mosquitto must be
// installed; the error of Available says how to install it.
func StartMosquitto(cfg MosquittoConfig) (*Mosquitto, error) {
	program, err := findProgram(MosquittoServer)
	if err != nil {
		return nil, err
	}
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("start mosquitto: %w", err)
	}
	return onFreePorts(3, func(ports []int) (*Mosquitto, error) { return startMosquittoOn(program, cfg, ports) })
}

func startMosquittoOn(program string, cfg MosquittoConfig, ports []int) (*Mosquitto, error) {
	m := &Mosquitto{cfg: cfg, unitsPort: ports[0], servicePort: ports[1]}
	if cfg.UnitsCA != "" {
		m.certificatesPort = ports[2]
	}
	if err := m.writeFiles(); err != nil {
		return nil, fmt.Errorf("configure mosquitto: %w", err)
	}
	var err error
	m.child, err = startChild(context.Background(), childConfig{
		name:    "mosquitto",
		command: func() (*exec.Cmd, error) { return exec.Command(program, "-c", m.path("mosquitto.conf")), nil },
		// Only its own message counts: a successful dial might reach another program on the port.
		serving: " running",
		log:     cfg.Logger,
	})
	return m, err
}

// UnitsURL returns the URL for units.
func (m *Mosquitto) UnitsURL() string {
	scheme := "tcp"
	if m.cfg.CertFile != "" {
		scheme = "ssl"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, m.unitsPort)
}

// CertificatesURL returns the URL for units with certificates.
func (m *Mosquitto) CertificatesURL() string {
	return fmt.Sprintf("ssl://127.0.0.1:%d", m.certificatesPort)
}

// ServiceURL returns the URL for the service.
func (m *Mosquitto) ServiceURL() string {
	scheme := "tcp"
	if m.cfg.ServiceTLS != nil {
		scheme = "ssl"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, m.servicePort)
}

// SetUnits replaces the units and their passwords without a restart. It returns before the broker
// has read them; it then disconnects those whose password is no longer valid.
func (m *Mosquitto) SetUnits(passwords map[string]string) error {
	if err := m.writePasswords("units.passwd", passwords); err != nil {
		return fmt.Errorf("change the units' passwords: %w", err)
	}
	return m.signal(syscall.SIGHUP)
}

// UnitsPasswords returns the path of the units' password file, which an operator may change.
func (m *Mosquitto) UnitsPasswords() string { return m.path("units.passwd") }

// PIDFile returns the path of the file with the broker's process id.
func (m *Mosquitto) PIDFile() string { return m.path("data/mosquitto.pid") }

func (m *Mosquitto) path(name string) string { return filepath.Join(m.cfg.Dir, name) }

func (m *Mosquitto) writeFiles() error {
	if err := os.MkdirAll(m.path("data"), 0o700); err != nil {
		return err
	}
	conf, err := m.configuration()
	if err != nil {
		return err
	}
	service := map[string]string{}
	if m.cfg.ServicePassword != "" {
		service[mosquitto.ServiceUser] = m.cfg.ServicePassword
	}
	serviceACL := mosquitto.ServiceACL
	if m.cfg.GatewayPassword != "" {
		service[GatewayUser] = m.cfg.GatewayPassword
		serviceACL += "\nuser " + GatewayUser + "\ntopic readwrite motorpool/v1/#\ntopic readwrite bench/#\n" +
			"topic read ovms/#\ntopic read teltonika/#\n"
	}
	return errors.Join(
		os.WriteFile(m.path("mosquitto.conf"), []byte(conf), 0o600),
		os.WriteFile(m.path("units.acl"), []byte(mosquitto.UnitsACL), 0o600),
		os.WriteFile(m.path("service.acl"), []byte(serviceACL), 0o600),
		m.writePasswords("units.passwd", m.cfg.Units),
		m.writePasswords("service.passwd", service),
	)
}

// configuration returns the production configuration with this machine's ports and paths.
func (m *Mosquitto) configuration() (string, error) {
	service := fmt.Sprintf("\nlistener %d 127.0.0.1\n", m.servicePort)
	if t := m.cfg.ServiceTLS; t != nil { // as mosquitto/README.md says
		service += fmt.Sprintf(
			"tls_version tlsv1.2\ncertfile %s\nkeyfile %s\ncafile %s\nrequire_certificate true\n", t.CertFile, t.KeyFile, t.CAFile,
		)
	}
	changes := [][2]string{
		{"\nlistener 8883\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", m.unitsPort)},
		{"\nlistener 1884 127.0.0.1\n", service},
	}
	certificate := "\ncertfile /mosquitto/config/tls/server.crt\nkeyfile /mosquitto/config/tls/server.key\n"
	if m.cfg.CertFile != "" {
		changes = append(changes, [2]string{certificate, "\ncertfile " + m.cfg.CertFile + "\nkeyfile " + m.cfg.KeyFile + "\n"})
	} else {
		changes = append(changes, [2]string{"\ntls_version tlsv1.2" + certificate, "\n"})
	}
	if m.cfg.MaxUnitConnections > 0 {
		changes = append(changes, [2]string{"\nmax_connections 60000\n", fmt.Sprintf("\nmax_connections %d\n", m.cfg.MaxUnitConnections)})
	}
	conf := mosquitto.Conf
	if m.certificatesPort != 0 {
		conf += mosquitto.CertificatesConf
		changes = append(changes,
			[2]string{"\nlistener 8884\n", fmt.Sprintf("\nlistener %d 127.0.0.1\n", m.certificatesPort)},
			[2]string{"/mosquitto/config/tls/units-ca.crt", m.cfg.UnitsCA}, [2]string{"/mosquitto/config/tls/units.crl", m.cfg.UnitsCRL})
	}
	changes = append(changes,
		[2]string{"/mosquitto/config/", m.cfg.Dir + "/"},
		[2]string{"/mosquitto/data/", m.path("data") + "/"})

	conf, err := replaced("mosquitto.conf", conf, changes)
	if err != nil {
		return "", err
	}
	if os.Geteuid() == 0 {
		// Otherwise it changes to a user that cannot read the folder; and the kernel would not end
		// it with this process any more.
		conf += "\nuser root\n"
	}
	return conf, nil
}

func (m *Mosquitto) writePasswords(name string, passwords map[string]string) error {
	var file strings.Builder
	for _, user := range slices.Sorted(maps.Keys(passwords)) {
		line, err := mosquitto.PasswordLine(user, passwords[user])
		if err != nil {
			return err
		}
		file.WriteString(line + "\n")
	}
	return os.WriteFile(m.path(name), []byte(file.String()), 0o600)
}
