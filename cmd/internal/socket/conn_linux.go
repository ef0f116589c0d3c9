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
	switch c := c.(type) {
	case *net.TCPConn:
		return direct(c)
	case *net.UnixConn:
		if c.LocalAddr().Network() == "unix" {
			return direct(c)
		}
	}
	return c
}

// stream is a socket of package net that carries bytes without bounds.
type stream interface {
	net.Conn
	syscall.Conn
	CloseWrite() error // net/http asks for it, to end its own side before it hangs up on a caller who is still sending
}

func direct(s stream) net.Conn {
	raw, err := s.SyscallConn()
	if err != nil {
		return s
	}
	c := &conn{stream: s, raw: raw}
	c.in.try, c.out.try = c.in.read, c.out.write
	return c
}

// conn is a stream; deadlines, and all else but reading and writing, are those of package net.
type conn struct {
	stream
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
