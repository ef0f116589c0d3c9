package broker

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/net/proxy"
)

// readAhead is some fifty reports.
const readAhead = 32 << 10

// bufferedConn reads ahead. The client library reads the head of each packet byte by byte: for a report these would be four system calls.
type bufferedConn struct {
	net.Conn
	reader *bufio.Reader
}

func buffered(c net.Conn) bufferedConn {
	return bufferedConn{Conn: c, reader: bufio.NewReaderSize(c, readAhead)}
}

func (c bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// dial opens what a connection of the client library goes over, as the library would.
func dial(to *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: o.ConnectTimeout}
	conn, err := proxy.FromEnvironmentUsing(dialer).Dial("tcp", to.Host)
	if err != nil {
		return nil, err
	}
	switch to.Scheme {
	case "tcp":
	case "ssl":
		if conn, err = secure(conn, to.Hostname(), o.TLSConfig, o.ConnectTimeout); err != nil {
			return nil, err
		}
	default:
		_ = conn.Close()
		return nil, fmt.Errorf("scheme %q: want tcp or ssl", to.Scheme)
	}
	return buffered(conn), nil
}

// secure returns a connection over which both sides have proven who they are, and closes the one below where they have not.
func secure(conn net.Conn, host string, c *tls.Config, timeout time.Duration) (net.Conn, error) {
	if c == nil {
		c = &tls.Config{}
	}
	if c = c.Clone(); c.ServerName == "" {
		c.ServerName = host
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	secured := tls.Client(conn, c)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}
