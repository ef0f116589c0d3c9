package mosquitto_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

func TestUnitsListener_SpeaksTLS(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	cert, key, pool := certificate(t)
	broker := startMosquitto(t, devstack.MosquittoConfig{
		Units:    map[string]string{"unit": passwordOf("unit")},
		CertFile: cert, KeyFile: key,
	})
	l := login{url: broker.UnitsURL(), user: "unit", password: passwordOf("unit")}
	l.tune = func(o *paho.ClientOptions) { o.SetTLSConfig(&tls.Config{RootCAs: pool}) }
	l.mustDial(t)

	l.tune = func(o *paho.ClientOptions) { o.SetTLSConfig(&tls.Config{RootCAs: x509.NewCertPool()}) }
	if _, err := l.dial(t); err == nil {
		t.Error("a client connected to a broker with an unknown certificate")
	}
}

// certificate creates a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return write("server.crt", "CERTIFICATE", der), write("server.key", "EC PRIVATE KEY", keyDER), pool
}
