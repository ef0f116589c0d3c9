package waitingroom

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server whose calls all wait by themselves, unless its crowd is made larger.
type world struct {
	*Server
	address string
	log     *lines
}

// lines are what a server logs.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newWorld(t *testing.T, handler http.Handler, change ...func(*Server)) *world {
	t.Helper()
	w := &world{log: &lines{}}
	w.Server = New(&http.Server{Handler: handler, ErrorLog: log.New(w.log, "", 0), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute},
		func(*http.Request) bool { return true })
	w.room.crowd, w.room.patience = 0, 0
	for _, c := range change {
		c(w.Server)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.Serve(l) }()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := w.room.wait(ctx); err != nil {
			t.Errorf("some are still in the waiting room: %v", err)
		}
	})
	return w
}

// caller is a connection to the server.
type caller struct {
	t *testing.T
	net.Conn
	read *bufio.Reader
}

func (w *world) call(t *testing.T) *caller {
	t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &caller{t: t, Conn: c, read: bufio.NewReader(c)}
}

func (c *caller) say(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) order(path string) {
	c.t.Helper()
	c.say("POST %s HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n", path)
}

// said is an answer without its body.
type said struct {
	Status, Proto string
	StatusCode    int
	ContentLength int64
	Header        http.Header
	Close         bool
}

// hear returns the next answer, with its body.
func (c *caller) hear() (said, string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.read, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return said{r.Status, r.Proto, r.StatusCode, r.ContentLength, r.Header, r.Close}, string(body)
}

// isLeft fails unless the server hangs up without another word.
func (c *caller) isLeft() {
	c.t.Helper()
	if b, err := c.read.ReadByte(); err == nil {
		c.t.Fatalf("the server says more: %q", b)
	} else if failed := net.Error(nil); errors.As(err, &failed) && failed.Timeout() {
		c.t.Fatal("the server does not hang up")
	}
}

// by waits until so many calls wait by themselves, and others are at rest.
func (w *world) by(t *testing.T, asking, atRest int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w.room.mu.Lock()
		a, r := len(w.room.asking), len(w.room.atRest)
		w.room.mu.Unlock()
		if a == asking && r == atRest {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait and %d are at rest, want %d and %d", a, r, asking, atRest)
		}
	}
}

// held is a handler that answers when it is let go.
type held struct{ letGo chan struct{} }

func newHeld() *held { return &held{make(chan struct{})} }

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	<-h.letGo
	w.Header().Set("X-Path", r.URL.Path)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = fmt.Fprintf(w, "%s %s", r.Method, body)
}
