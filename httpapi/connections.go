package httpapi

import (
	"cmp"
	"container/list"
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
)

const (
	// unprovenIdle is how long a read on a connection may take before the connection's first valid token. It is the
	// time of a whole request, so that it shortens only the wait for the next one.
	unprovenIdle = headerBudget + bodyBudget
	// minShare is how many connections an actor's tokens keep from eviction at least; see share.
	minShare = 8
	// limitWarningEvery is the shortest time between two warnings that the limit was reached.
	limitWarningEvery = time.Minute
)

// Connections is a listener that bounds how many of its connections are open. At the bound a new connection takes the
// place of the oldest one that is not proven: that has not carried a valid token of an actor within its share. Where all
// are, the new one is closed. So neither idle unauthenticated connections nor those of one actor can use up the
// process's open files, or lock callers out.
type Connections struct {
	net.Listener
	max     int
	log     *slog.Logger
	metrics connectionMetrics

	mu       sync.Mutex
	open     int
	unproven list.List                // of *connection, oldest first
	proven   map[telematics.Actor]int // how many connections each has proven
	warned   time.Time
}

// BoundConnections returns a listener that keeps at most max connections open, and registers what it counts. A nil
// registerer registers nothing; a nil log is slog.Default().
func BoundConnections(listener net.Listener, max int, registerer prometheus.Registerer, log *slog.Logger) *Connections {
	l := &Connections{Listener: listener, max: max, log: cmp.Or(log, slog.Default()), proven: map[telematics.Actor]int{}}
	l.metrics = newConnectionMetrics(registerer, l.openConnections, l.unprovenConnections)
	return l
}

// share is how many connections one actor can prove: else a single client's token could hold them all.
func (l *Connections) share() int { return max(minShare, l.max/32) }

// Accept waits for the next connection.
func (l *Connections) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.admit(accepted); c != nil {
			return c, nil
		}
		_ = accepted.Close()
	}
}

func (l *Connections) openConnections() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.open)
}

func (l *Connections) unprovenConnections() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.unproven.Len())
}

// admit returns nil where there is no room.
func (l *Connections) admit(accepted net.Conn) *connection {
	l.mu.Lock()
	full := l.open >= l.max
	oldest := l.unproven.Front()
	if full {
		l.warn()
	}
	if full && oldest == nil {
		l.metrics.refused.Inc()
		l.mu.Unlock()
		return nil
	}
	var evicted *connection
	if full {
		evicted = l.forget(oldest.Value.(*connection))
		l.metrics.evicted.Inc()
	}
	c := &connection{Conn: accepted, of: l}
	c.place = l.unproven.PushBack(c)
	l.open++
	l.mu.Unlock()
	if evicted != nil {
		_ = evicted.Conn.Close()
	}
	return c
}

// warn is called with the lock held.
func (l *Connections) warn() {
	if now := time.Now(); now.Sub(l.warned) >= limitWarningEvery {
		l.warned = now
		l.log.Warn("connection limit reached", "limit", l.max, "unauthenticated", l.unproven.Len())
	}
}

// forget stops counting a connection. It is called with the lock held.
func (l *Connections) forget(c *connection) *connection {
	if !c.gone {
		c.gone = true
		l.open--
		l.removeUnproven(c)
		l.disprove(c)
	}
	return c
}

// disprove gives back what a connection has of its actor's share. It is called with the lock held.
func (l *Connections) disprove(c *connection) {
	if !c.proven.Load() {
		return
	}
	if l.proven[c.actor]--; l.proven[c.actor] == 0 {
		delete(l.proven, c.actor)
	}
}

func (l *Connections) removeUnproven(c *connection) {
	if c.place != nil {
		l.unproven.Remove(c.place)
		c.place = nil
	}
}

// connection is counted by its listener until it is closed.
type connection struct {
	net.Conn
	of *Connections

	reads  sync.Mutex  // held by a Read
	proven atomic.Bool // see Connections; changed under the listener's lock

	// Under the listener's lock.
	place *list.Element    // among those that are not proven; nil: it is, or it is closed
	actor telematics.Actor // who has proven it
	gone  bool
}

// SetReadDeadline allows a connection that is not proven no longer than unprovenIdle.
func (c *connection) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(unprovenIdle); t.After(latest) && !c.proven.Load() {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// prove keeps the connection from being evicted: it has carried a valid token of the actor. Beyond the actor's share it
// changes nothing; a later request may prove the connection, as behind a proxy, where many actors share one.
func (c *connection) prove(actor telematics.Actor) {
	if c.proven.Load() {
		return
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone || c.proven.Load() || l.proven[actor] >= l.share() {
		return
	}
	l.proven[actor]++
	c.actor = actor
	c.proven.Store(true)
	l.removeUnproven(c)
}

func (c *connection) Read(p []byte) (int, error) {
	c.reads.Lock()
	defer c.reads.Unlock()
	return c.Conn.Read(p)
}

// Close closes the connection, and makes room for another. It first discards input that will not be read, such as a
// request that the caller pipelined behind its last answered one: otherwise the kernel sends a reset, which can cost the
// caller that answer.
func (c *connection) Close() error {
	if c.reads.TryLock() { // otherwise a Read waits for input, so there is none
		discardInput(c.Conn)
		c.reads.Unlock()
	}
	c.of.mu.Lock()
	c.of.forget(c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

const (
	// maxDiscarded bounds what Close discards, in bytes.
	maxDiscarded = maxHeader + maxBody
	// discardWithin is how long Close waits for more input.
	discardWithin = 5 * time.Millisecond
)

// discardInput reads what a connection has received.
func discardInput(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(discardWithin)) == nil {
		_, _ = io.CopyN(io.Discard, c, maxDiscarded) // the connection is closed in any case
	}
}

// CloseWrite lets net/http end its side before it closes the connection of a caller that is still sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// withConnection lets handlers prove the connection of a request. It is a ConnContext of net/http.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	for {
		if found, ok := c.(*connection); ok {
			return context.WithValue(ctx, connectionKey{}, found)
		}
		wrapped, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = wrapped.NetConn()
	}
}

// proveConnection notes that the connection of a request has carried a valid token of the actor.
func proveConnection(ctx context.Context, actor telematics.Actor) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.prove(actor)
	}
}
