//go:build amd64 || arm64

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Direct returns a connection with the same two ends. One that is no stream of bytes itself, but something over it, is returned as it is.
func Direct(c net.Conn) net.Conn {
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
	default:
		return c
	}
	if c.LocalAddr().Network() == "unixpacket" || c.LocalAddr().Network() == "unixgram" {
		return c
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return c
	}
	d := &conn{Conn: c, raw: raw}
	d.in.try, d.out.try = d.in.read, d.out.write
	return d
}

// conn is a connection; deadlines, and all else but reading and writing, are those of package net.
type conn struct {
	net.Conn
	raw     syscall.RawConn
	in, out transfer
}

func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.in.run(c.raw.Read, p)
	switch {
	case err != nil:
		return n, c.explain("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.run(c.raw.Write, p)
	if err != nil {
		return n, c.explain("write", err)
	}
	return n, nil
}

// CloseWrite tells the other end that nothing more comes. net/http does so before it hangs up on a caller who is still sending.
func (c *conn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

// explain makes of an error what package net would.
func (c *conn) explain(op string, err error) error {
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		failed.Op = op // "raw-read" means nothing to who called Read
		return failed
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// SyscallConn is for who asks before each use whether the other side has hung up, or said what nobody asked for, as Redis's client does. It is
// of no use for reading what is still to come: it calls where there is something to find, and nowhere else.
func (c *conn) SyscallConn() (syscall.RawConn, error) { return peeking{c.raw}, nil }

// peeking reads only where there is something to read.
type peeking struct{ syscall.RawConn }

// Read does not call where nothing has come, instead of waiting: there is nothing to find.
func (p peeking) Read(look func(fd uintptr) bool) error {
	return p.RawConn.Read(func(fd uintptr) bool { return silent(fd) || look(fd) })
}
