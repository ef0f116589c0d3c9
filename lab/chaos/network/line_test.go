package network

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
)

// aLine is a line to a server that echoes everything.
func aLine(t *testing.T) (*Line, func() net.Conn) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	n := Network{}
	at, err := n.Add("a line", "tcp://"+server.Addr().String()+"/path")
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	address, path, _ := strings.Cut(strings.TrimPrefix(at, "tcp://"), "/")
	if path != "path" {
		t.Errorf("the address of the line is %s, without the path", at)
	}
	return n["a line"], func() net.Conn {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// echoes reports whether a text is echoed soon, and how long that took.
func echoes(c net.Conn, text string) (bool, time.Duration) {
	begin := time.Now()
	_ = c.SetDeadline(begin.Add(2 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		return false, 0
	}
	back := make([]byte, len(text))
	_, err := io.ReadFull(c, back)
	return err == nil && string(back) == text, time.Since(begin)
}

func TestLine_CutClosesConnectionsAndRefusesNewOnes(t *testing.T) {
	l, dial := aLine(t)
	c := dial()
	if ok, _ := echoes(c, "hello"); !ok {
		t.Fatal("the line does not transmit")
	}
	l.Cut()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the cut: %v, want the connection closed", err)
	}
	if _, err := net.Dial("tcp", l.address); err == nil {
		t.Error("a cut line accepts a connection")
	}
	require.NoError(t, l.Mend())
	if ok, _ := echoes(dial(), "hello"); !ok {
		t.Error("the mended line does not transmit")
	}
}

func TestLine_EveryToxicHasItsEffectUntilMended(t *testing.T) {
	for _, test := range []struct {
		name  string
		toxin Toxic
		hurts func(ok bool, took time.Duration) bool
	}{
		{"silence", Silence(), func(ok bool, _ time.Duration) bool { return !ok }},
		{"delay", Delay(200), func(ok bool, took time.Duration) bool { return ok && took > 150*time.Millisecond }},
		{"slowness", Slowness(1), func(ok bool, took time.Duration) bool { return ok && took > 150*time.Millisecond }},
		{"reset", Reset(0), func(ok bool, _ time.Duration) bool { return !ok }},
		{"tear", Tear(20), func(ok bool, _ time.Duration) bool { return !ok }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, dial := aLine(t)
			c := dial()
			if ok, _ := echoes(c, "hello"); !ok {
				t.Fatal("the line does not transmit")
			}
			l.SetToxic(test.toxin)
			if ok, took := echoes(c, strings.Repeat("x", 200)); !test.hurts(ok, took) {
				t.Errorf("with the toxic the line transmits: %t, in %v", ok, took)
			}
			l.RemoveToxic()
			fastest := time.Hour
			for range 10 { // on a busy machine some take longer; with a toxic all would
				ok, took := echoes(dial(), strings.Repeat("x", 200))
				if !ok {
					t.Error("the mended line does not transmit")
				}
				fastest = min(fastest, took)
			}
			if fastest > 150*time.Millisecond {
				t.Errorf("the mended line transmits in %v, want at most 150ms", fastest)
			}
		})
	}
}

func TestLine_RemoveToxicWorksWhileAToxicHoldsDataOfClosedConnections(t *testing.T) {
	l, dial := aLine(t)
	for range 20 {
		c := dial()
		l.SetToxic(Delay(300))
		_, _ = io.WriteString(c, strings.Repeat("x", 2000))
		time.Sleep(5 * time.Millisecond) // some of the data is in transit
		_ = c.Close()
		l.RemoveToxic()
	}
	if ok, _ := echoes(dial(), "hello"); !ok {
		t.Error("the line does not transmit any more")
	}
}
