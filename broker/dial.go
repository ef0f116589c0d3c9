package broker

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

// dial opens what a connection of the client library goes over, as the library would.
func dial(to *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
	conn, err := proxy.FromEnvironmentUsing(&net.Dialer{Timeout: o.ConnectTimeout}).Dial("tcp", to.Host)
	if err != nil {
		return nil, err
	}
	switch to.Scheme {
	case "tcp":
		return thrifty(conn), nil
	case "ssl":
		secured, err := secure(conn, to.Hostname(), o.TLSConfig, o.ConnectTimeout)
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		return thrifty(secured), nil
	}
	_ = conn.Close()
	return nil, fmt.Errorf("scheme %q: want tcp or ssl", to.Scheme)
}

// secure returns a connection over which the server has proven who it is.
func secure(conn net.Conn, host string, c *tls.Config, timeout time.Duration) (*tls.Conn, error) {
	if c == nil {
		c = &tls.Config{}
	}
	if c = c.Clone(); c.ServerName == "" {
		c.ServerName = host
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	secured := tls.Client(conn, c)
	return secured, secured.HandshakeContext(ctx)
}
