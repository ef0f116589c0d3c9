//go:build amd64 || arm64

package socket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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

// failures returns what goes wrong with a connection, one thing after the other.
func failures(t *testing.T, a, b net.Conn) map[string]error {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	failed := map[string]error{}
	try := func(when string) {
		_, failed["read "+when] = a.Read(make([]byte, 1))
		_, failed["write "+when] = a.Write(make([]byte, 1))
	}
	must(a.SetDeadline(time.Now().Add(-time.Second)))
	try("after the deadline")
	must(a.SetDeadline(time.Time{}))
	must(b.(interface{ SetLinger(int) error }).SetLinger(0)) // it hangs up by a reset
	must(b.Close())
	try("after a reset")
	must(a.Close())
	try("of a closed one")
	return failed
}

func TestErrorsAreThoseOfPackageNet(t *testing.T) {
	a, b := pair(t)
	ours := failures(t, a, b.(*conn).stream)
	c, d := pair(t)
	for what, want := range failures(t, c.(*conn).stream, d.(*conn).stream) {
		told, ok := any(want).(*net.OpError)
		if !ok {
			t.Fatalf("%s: package net says %#v", what, want)
		}
		got, ok := any(ours[what]).(*net.OpError) // as it is: callers look at the type
		if !ok || got.Op != told.Op || got.Net != told.Net || got.Timeout() != told.Timeout() || got.Err.Error() != told.Err.Error() ||
			got.Source.String() != a.LocalAddr().String() || got.Addr.String() != a.RemoteAddr().String() {
			t.Errorf("%s: %#v, package net says %#v", what, ours[what], want)
		}
		for _, reason := range []error{os.ErrDeadlineExceeded, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
			if errors.Is(ours[what], reason) != errors.Is(want, reason) {
				t.Errorf("%s: %v is %v: %t, with package net it is not so", what, ours[what], reason, errors.Is(ours[what], reason))
			}
		}
	}
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
		for asked, deadline := false, time.Now().Add(10*time.Second); !asked; {
			if time.Now().After(deadline) {
				t.Fatalf("%s did not come", step.name)
			}
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

// Who sends too much is told so, and then that nothing more comes, although it is still sending: net/http ends its own side first.
func TestAServerOnItCanEndItsOwnSide(t *testing.T) {
	plain, err := nettest.NewLocalListener("tcp")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), MaxHeaderBytes: 1 << 10, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(Listener{plain}) }()
	defer server.Close()
	caller, err := net.Dial("tcp", plain.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	if _, err := fmt.Fprintf(caller, "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n", strings.Repeat("x", 16<<10)); err != nil {
		t.Fatal(err)
	}
	if err := caller.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(caller)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 431 ")) {
		t.Errorf("read %.40q, %v", answer, err)
	}
}

func TestTLSGoesOverIt(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	server.Listener = Listener{server.Listener}
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return Direct(c), nil
	}
	sent := bytes.Repeat([]byte("secret "), 1<<16)
	response, err := client.Post(server.URL, "text/plain", bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if received, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(received, sent) {
		t.Errorf("%d bytes of %d came back: %v", len(received), len(sent), err)
	}
}
