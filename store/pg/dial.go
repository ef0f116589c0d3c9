package pg

import (
	"context"
	"fmt"
	"net"
	"time"

	"motorpool/store/unavailable"
)

// dialer opens connections that do not block forever when the server neither replies nor closes the
// connection: the driver itself has no such timeout.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext opens a connection.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// Dial opens a connection; the driver prefers DialContext.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

// DialTimeout opens a connection; the driver prefers DialContext.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d(ctx, network, address)
}

func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &newConn{Conn: conn}, nil
}

// newConn fails where the first reply is none of Postgres: the driver makes room for as much as the
// length in it says, which is 1.4 GB for the "HTTP/" of a proxy.
type newConn struct {
	net.Conn
	head []byte // of the reply: a byte for the kind, and four for the length
}

// tlsHandshake is the first byte of TLS.
const tlsHandshake = 0x16

func (c *newConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.head = append(c.head, b[:min(n, 5-len(c.head))]...)
	switch h := c.head; {
	case string(h) == "S", string(h) == "N": // the answer whether it speaks TLS; the reply follows
		c.head = nil
	case len(h) < 5, h[0] == 'E', h[0] == tlsHandshake: // the driver reads errors as text, too
	case h[1] != 0 || h[2] != 0:
		return 0, unavailable.Mark(fmt.Errorf("it is no postgres: its reply begins with %q", h))
	}
	return n, err
}

// patientDialer opens connections whose reads and writes fail after patience.
func patientDialer(patience time.Duration) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return patientConn{conn, patience}, nil
	}
}

type patientConn struct {
	net.Conn
	patience time.Duration
}

func (c patientConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

func (c patientConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// mortalDialer opens connections that are closed when a context ends.
func mortalDialer(until context.Context) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return mortalConn{conn, context.AfterFunc(until, func() { _ = conn.Close() })}, nil
	}
}

type mortalConn struct {
	net.Conn
	spare func() bool
}

func (c mortalConn) Close() error {
	c.spare()
	return c.Conn.Close()
}
