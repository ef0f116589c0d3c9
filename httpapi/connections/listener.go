// Package connections bounds how many connections of a listener are open, and keeps those of
// authenticated callers first.
//
//	Bound ─► Listener ─► http.Server (ConnContext: Context)
//	handler: MarkAuthenticated for each valid token
package connections

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

// Listener is a listener that bounds how many of its connections are open. At the bound a new
// connection takes the place of the oldest one that is not authenticated: that has not carried a
// valid token of an actor within its share. Where all are, the new one is closed. So neither idle
// unauthenticated connections nor those of one actor can use up the process's open files, or lock
// callers out.
type Listener struct {
	net.Listener
	max     int
	log     *slog.Logger
	metrics metrics

	mu              sync.Mutex
	open            int
	unauthenticated list.List                // of *connection, oldest first
	authenticated   map[telematics.Actor]int // how many connections each has authenticated
	warned          time.Time
}

// Bound returns a listener that keeps at most max connections open, and registers what it counts. A
// nil registerer registers nothing; a nil log is slog.Default().
func Bound(listener net.Listener, max int, registerer prometheus.Registerer, log *slog.Logger) *Listener {
	l := &Listener{Listener: listener, max: max, log: cmp.Or(log, slog.Default()), authenticated: map[telematics.Actor]int{}}
	l.metrics = newMetrics(registerer, l.openConnections, l.unauthenticatedConnections)
	return l
}

// share is how many connections one actor can markAuthenticated: else a single client's token could
// hold them all.
func (l *Listener) share() int { return max(minShare, l.max/shares) }

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
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

func (l *Listener) openConnections() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.open)
}

func (l *Listener) unauthenticatedConnections() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.unauthenticated.Len())
}

// admit returns nil where there is no room.
func (l *Listener) admit(accepted net.Conn) *connection {
	l.mu.Lock()
	full := l.open >= l.max
	oldest := l.unauthenticated.Front()
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
	c.place = l.unauthenticated.PushBack(c)
	l.open++
	l.mu.Unlock()
	if evicted != nil {
		_ = evicted.Conn.Close()
	}
	return c
}

// warn is called with the lock held.
func (l *Listener) warn() {
	if now := time.Now(); now.Sub(l.warned) >= warnEvery {
		l.warned = now
		l.log.Warn("connection limit reached", "limit", l.max, "unauthenticated", l.unauthenticated.Len())
	}
}

// forget stops counting a connection. It is called with the lock held.
func (l *Listener) forget(c *connection) *connection {
	if !c.gone {
		c.gone = true
		l.open--
		l.removeUnproven(c)
		l.releaseShare(c)
	}
	return c
}

// releaseShare gives back what a connection has of its actor's share. It is called with the lock
// held.
func (l *Listener) releaseShare(c *connection) {
	if !c.authenticated.Load() {
		return
	}
	if l.authenticated[c.actor]--; l.authenticated[c.actor] == 0 {
		delete(l.authenticated, c.actor)
	}
}

func (l *Listener) removeUnproven(c *connection) {
	if c.place != nil {
		l.unauthenticated.Remove(c.place)
		c.place = nil
	}
}

// connection is counted by its listener until it is closed.
type connection struct {
	net.Conn
	of *Listener

	reads         sync.Mutex  // held by a Read
	authenticated atomic.Bool // see Listener; changed under the listener's lock

	// Under the listener's lock.
	place *list.Element    // among those that are not authenticated; nil: it is, or it is closed
	actor telematics.Actor // who has authenticated it
	gone  bool
}

// SetReadDeadline allows a connection that is not authenticated no longer than unauthenticatedIdle.
func (c *connection) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(unauthenticatedIdle); t.After(latest) && !c.authenticated.Load() {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// markAuthenticated keeps the connection from being evicted: it has carried a valid token of the
// actor. Beyond the actor's share it changes nothing; a later request may markAuthenticated the
// connection, as behind a proxy, where many actors share one.
func (c *connection) markAuthenticated(actor telematics.Actor) {
	if c.authenticated.Load() {
		return
	}
	l := c.of
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone || c.authenticated.Load() || l.authenticated[actor] >= l.share() {
		return
	}
	l.authenticated[actor]++
	c.actor = actor
	c.authenticated.Store(true)
	l.removeUnproven(c)
}

func (c *connection) Read(p []byte) (int, error) {
	c.reads.Lock()
	defer c.reads.Unlock()
	return c.Conn.Read(p)
}

// Close closes the connection, and makes room for another. It first discards input that will not be
// read, such as a request that the caller pipelined behind its last answered one: otherwise the
// kernel sends a reset, which can cost the caller that answer.
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

// discardInput reads what a connection has received.
func discardInput(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(discardWithin)) == nil {
		_, _ = io.CopyN(io.Discard, c, maxDiscarded) // the connection is closed in any case
	}
}

// CloseWrite lets net/http end its side before it closes the connection of a caller that is still
// sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// Context is the ConnContext of an http.Server whose handlers call MarkAuthenticated.
func Context(ctx context.Context, c net.Conn) context.Context {
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

// MarkAuthenticated records that the connection of a request has carried a valid token of the
// actor.
func MarkAuthenticated(ctx context.Context, actor telematics.Actor) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.markAuthenticated(actor)
	}
}
