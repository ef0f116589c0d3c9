package devstack

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
)

const (
	// connectTimeout is how long a connection may stay open without a CONNECT.
	connectTimeout = 10 * time.Second
	// writeTimeout is how long a client may refuse to read. The library holds a lock of the client
	// while it writes to it, and a publisher to that client waits for the lock: a frozen client
	// must not freeze the others.
	writeTimeout = 2 * time.Second
	// acceptPause follows a failed accept (out of file descriptors, mostly).
	acceptPause = 50 * time.Millisecond
)

// mqttListener is one of the broker's two listeners. Other than the library's listeners, it
// notices when the broker has removed a client, and closes connections that send no CONNECT.
type mqttListener struct {
	net.Listener
	id  string
	log *slog.Logger

	served sync.WaitGroup // connections that the broker still handles

	mu     sync.Mutex // guards closed and conns
	closed bool
	conns  map[*mqttConn]struct{}
}

var _ listeners.Listener = (*mqttListener)(nil)

func listenMQTT(id, addr string, log *slog.Logger) (*mqttListener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for MQTT clients (%s): %w", id, err)
	}
	return &mqttListener{Listener: l, id: id, log: log, conns: map[*mqttConn]struct{}{}}, nil
}

func (l *mqttListener) ID() string              { return l.id }
func (l *mqttListener) Address() string         { return l.Addr().String() }
func (l *mqttListener) Protocol() string        { return "tcp" }
func (l *mqttListener) Init(*slog.Logger) error { return nil }

// Serve accepts connections until the listener is closed.
func (l *mqttListener) Serve(establish listeners.EstablishFn) {
	for {
		accepted, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.log.Warn("mqtt connection not accepted", "listener", l.id, "err", err)
			time.Sleep(acceptPause)
			continue
		}
		conn := &mqttConn{Conn: accepted, gone: make(chan struct{})}
		if !l.track(conn) {
			_ = conn.Close()
			return
		}
		go func() {
			defer l.forget(conn)
			_ = conn.SetReadDeadline(time.Now().Add(connectTimeout))
			err := establish(l.id, conn)
			l.log.Debug("mqtt client gone", "listener", l.id, "remote", conn.RemoteAddr().String(), "err", err)
		}()
	}
}

// Close stops accepting, closes every connection and waits until the broker has removed them.
func (l *mqttListener) Close(listeners.CloseFn) {
	_ = l.Listener.Close()
	l.mu.Lock()
	l.closed = true
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.served.Wait()
}

func (l *mqttListener) track(conn *mqttConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.conns[conn] = struct{}{}
	l.served.Add(1)
	return true
}

func (l *mqttListener) forget(conn *mqttConn) {
	_ = conn.Close()
	if conn.release != nil {
		conn.release()
	}
	close(conn.gone)
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
	l.served.Done()
}

// mqttConn is a client's connection.
type mqttConn struct {
	net.Conn
	gone    chan struct{} // closed when the broker has forgotten the client
	release func()        // gives the client id back; nil before the client has one
}

// SetDeadline sets the read deadline only: the library enforces keep-alive with it.
func (c *mqttConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// Write closes the connection of a client that does not read for writeTimeout.
func (c *mqttConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	n, err := c.Conn.Write(b)
	if err != nil {
		_ = c.Close()
	}
	return n, err
}

// mqttSessions records which connection has a client id.
type mqttSessions struct {
	mu     sync.Mutex // guards holder
	holder map[string]*mqttConn
}

func newMQTTSessions() *mqttSessions { return &mqttSessions{holder: map[string]*mqttConn{}} }

// takeOver assigns a client its id, and returns when the earlier connection with that id is gone.
// Otherwise the end of the old connection can remove the new one from the library's tables, which
// then seems connected and gets no messages.
func (s *mqttSessions) takeOver(cl *mochi.Client) {
	conn, id := cl.Net.Conn.(*mqttConn), cl.ID
	s.mu.Lock()
	old := s.holder[id]
	s.holder[id] = conn
	s.mu.Unlock()

	conn.release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.holder[id] == conn {
			delete(s.holder, id)
		}
	}
	if old != nil {
		_ = old.Close()
		<-old.gone
	}
}
