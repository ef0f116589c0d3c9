package keyfile

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Authorities reads the certificates by which a server's certificate is checked, as PEM; nil where
// no file is named: the system's.
func Authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return roots, nil
}
