package devstack

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
)

// SecureURL makes the server speak TLS, and returns where clients connect then: to the same
// database, with the password, and only with a certificate of the authority whose common name is
// that of the user. The caller adds sslmode and the files.
func (p *Postgres) SecureURL(t ServerTLS) (*url.URL, error) {
	files := map[string]string{"ca.crt": t.CAFile, "server.crt": t.CertFile, "server.key": t.KeyFile}
	for name, from := range files {
		text, err := os.ReadFile(from)
		if err == nil {
			err = p.writeData(name, string(text))
		}
		if err != nil {
			return nil, fmt.Errorf("secure postgres: %w", err)
		}
	}
	rules, err := os.ReadFile(p.dataFile("pg_hba.conf"))
	if err != nil {
		return nil, fmt.Errorf("secure postgres: %w", err)
	}
	first := "hostssl " + postgresDatabase + " all 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n" +
		"hostnossl " + postgresDatabase + " all all reject\n"
	err = errors.Join(
		p.writeData("pg_hba.conf", first+string(rules)),
		p.writeData("postgresql.auto.conf", "ssl = on\nssl_ca_file = 'ca.crt'\n"),
		p.signal(syscall.SIGHUP),
	)
	if err != nil {
		return nil, fmt.Errorf("secure postgres: %w", err)
	}
	u, err := url.Parse(p.URL())
	if err != nil {
		return nil, fmt.Errorf("secure postgres: %w", err)
	}
	u.RawQuery = ""
	return u, nil
}

func (p *Postgres) dataFile(name string) string { return filepath.Join(p.DataDir(), name) }

// writeData writes a file that belongs to the server's user.
func (p *Postgres) writeData(name, text string) error {
	if err := os.WriteFile(p.dataFile(name), []byte(text), 0o600); err != nil {
		return err
	}
	return p.cluster.account.give(p.dataFile(name))
}
