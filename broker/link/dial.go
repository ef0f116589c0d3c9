package link

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/net/proxy"
)

// dial opens the network connection for the client library, as the library would, and wraps it in a
// batchingConn.
func dial(to *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
	silence := time.Duration(o.KeepAlive) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), o.ConnectTimeout)
	defer cancel()
	conn, err := proxy.Dial(ctx, "tcp", to.Host)
	if err != nil {
		return nil, err
	}
	switch to.Scheme {
	case "tcp":
		return batching(conn, o.WriteTimeout, silence), nil
	case "ssl":
		secured, err := secure(ctx, conn, to.Hostname(), o.TLSConfig)
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return batching(secured, o.WriteTimeout, silence), nil
	}
	_ = conn.Close()
	return nil, fmt.Errorf("scheme %q: want tcp or ssl", to.Scheme)
}

// secure returns a TLS connection after the handshake, which verifies the server.
func secure(ctx context.Context, conn net.Conn, host string, c *tls.Config) (*tls.Conn, error) {
	if c == nil {
		c = &tls.Config{}
	}
	if c = c.Clone(); c.ServerName == "" {
		c.ServerName = host
	}
	secured := tls.Client(conn, c)
	return secured, secured.HandshakeContext(ctx)
}
