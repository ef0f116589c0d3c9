package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/nettest"
)

// pair returns the two ends of a connection, the first of which was dialled and the second accepted.
func pair(t *testing.T) (net.Conn, net.Conn) { return pairOver(t, "tcp") }

// pairOver does so over a network.
func pairOver(t *testing.T, network string) (net.Conn, net.Conn) {
	t.Helper()
	plain, err := nettest.NewLocalListener(network)
	if err != nil {
		t.Fatal(err)
	}
	l := Listener{plain}
	defer l.Close()
	dialled, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	dialled = Direct(dialled)
	for _, c := range []net.Conn{dialled, accepted} {
		if _, ok := c.(*conn); !ok {
			t.Fatalf("%T is no connection of this package", c)
		}
		t.Cleanup(func() { c.Close() })
	}
	return dialled, accepted
}

func TestConnectionsDoWhatOthersDo(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				a, b := pairOver(t, network)
				return a, b, func() { a.Close(); b.Close() }, nil
			})
		})
	}
}

func TestErrorsAreThoseOfPackageNet(t *testing.T) {
	a, b := pair(t)
	twin, err := net.Dial("tcp", b.LocalAddr().String()) // nobody listens there any more
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled %v, %v", twin, err)
	}
	operation := func(err error, op string, reason error) {
		t.Helper()
		failed, ok := any(err).(*net.OpError) // as it is: callers look at the type
		if !ok || failed.Op != op || failed.Net != "tcp" || failed.Source.String() != a.LocalAddr().String() || failed.Addr.String() != a.RemoteAddr().String() || !errors.Is(err, reason) {
			t.Errorf("%#v, want %s of %v to fail for %v", err, op, a.LocalAddr(), reason)
		}
	}

	if err := a.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = a.Read(make([]byte, 1))
	operation(err, "read", os.ErrDeadlineExceeded)
	if !os.IsTimeout(err) {
		t.Errorf("%v is no timeout", err)
	}
	_, err = a.Write(make([]byte, 1))
	operation(err, "write", os.ErrDeadlineExceeded)
	if err := a.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}

	if err := b.(*conn).Conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	b.Close()
	_, err = a.Read(make([]byte, 1))
	operation(err, "read", syscall.ECONNRESET)
	_, err = a.Write(make([]byte, 1))
	operation(err, "write", syscall.EPIPE)

	a.Close()
	_, err = a.Read(make([]byte, 1))
	operation(err, "read", net.ErrClosed)
	_, err = a.Write(make([]byte, 1))
	operation(err, "write", net.ErrClosed)
}

func TestWhatDoesNotFitIsWrittenWhenThereIsRoom(t *testing.T) {
	a, b := pair(t)
	sent := bytes.Repeat([]byte("room "), 4<<20/5)
	wrote := make(chan error, 1)
	go func() {
		n, err := a.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		wrote <- errors.Join(err, a.Close())
	}()
	select {
	case err := <-wrote:
		t.Fatalf("4 MB were taken by nobody: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	received, err := io.ReadAll(b)
	if err := errors.Join(err, <-wrote); err != nil || !bytes.Equal(received, sent) {
		t.Fatalf("received %d bytes of %d: %v", len(received), len(sent), err)
	}
}

// look asks as Redis's client does: what has come, without taking it.
func look(t *testing.T, c net.Conn) (asked bool, found int, err error) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	failed := raw.Read(func(fd uintptr) bool {
		asked = true
		found, _, err = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return asked, found, err
}

func TestWhoLooksFindsWhatHasComeAndTheEnd(t *testing.T) {
	a, b := pair(t)
	if asked, _, _ := look(t, a); asked {
		t.Fatal("looked where nothing has come")
	}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"bytes", func() { _, _ = b.Write([]byte("!")) }, 1},
		{"the end", func() { _, _ = a.Read(make([]byte, 1)); b.Close() }, 0},
	} {
		step.do()
		for asked := false; !asked; {
			var found int
			var err error
			if asked, found, err = look(t, a); asked && (found != step.want || err != nil) {
				t.Fatalf("%s: found %d, %v", step.name, found, err)
			}
		}
	}
}

func TestWhatIsNoSocketStaysAsItIs(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := Direct(a); got != a {
		t.Errorf("%T became %T", a, got)
	}
}
