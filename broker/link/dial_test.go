package link

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
)

func TestDial_UsesTLSForItsScheme(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are not logged
	server.StartTLS()
	defer server.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for _, c := range []struct {
		scheme string
		tls    *tls.Config
		ok     bool
	}{
		{"ssl", &tls.Config{RootCAs: trusted}, true},
		{"ssl", &tls.Config{RootCAs: x509.NewCertPool()}, false},
		{"ssl", &tls.Config{RootCAs: trusted, ServerName: "elsewhere"}, false},
		{"ssl", nil, false}, // not trusted by the system
		{"tcp", nil, true},
		{"ws", nil, false},
	} {
		o := mqtt.ClientOptions{ConnectTimeout: 5 * time.Second, WriteTimeout: time.Second, TLSConfig: c.tls}
		conn, err := dial(&url.URL{Scheme: c.scheme, Host: server.Listener.Addr().String()}, o)
		if (err == nil) != c.ok {
			t.Errorf("%s with %+v: %v, want success: %t", c.scheme, c.tls, err, c.ok)
		}
		if err != nil {
			continue
		}
		if _, secured := conn.(*batchingConn).Conn.(*tls.Conn); secured != (c.scheme == "ssl") {
			t.Errorf("%s: TLS %v", c.scheme, secured)
		}
		_ = conn.Close()
	}
}

func TestDial_TLSHandshakeHasTheTimeLimitOfConnecting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := dial(&url.URL{Scheme: "ssl", Host: silent.Addr().String()}, mqtt.ClientOptions{ConnectTimeout: 50 * time.Millisecond})
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a TLS connection without a handshake")
		}
	case <-time.After(time.Minute):
		t.Error("the connection attempt has no time limit")
	}
}
