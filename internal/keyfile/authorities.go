package keyfile

import (
	"crypto/x509"
	"fmt"
	"os"
)

// Authorities reads the PEM file of the certificates that a server's certificate is verified with.
// Without a file it returns nil, which means the system's.
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
