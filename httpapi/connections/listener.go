// Package connections bounds the open connections of a listener. At the bound it closes
// unauthenticated ones first.
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

// Listener is a listener that bounds its open connections. At the bound, a new connection replaces
// the oldest unauthenticated one: one that has carried no valid token of an actor within its share.
// If all are authenticated, the new one is closed. So neither idle unauthenticated connections nor
// those of one actor can use up the process's open files, or lock callers out.
type Listener struct {
	net.Listener
	max     int
	log     *slog.Logger
	metrics metrics

	mu              sync.Mutex
	open            int
	unauthenticated list.List                // of *connection, oldest first
	authenticated   map[telematics.Actor]int // number of connections of each actor
	warned          time.Time
}

// Bound returns a listener that keeps at most max connections open, and registers its metrics. A
// nil registerer registers nothing; a nil log means slog.Default().
func Bound(listener net.Listener, max int, registerer prometheus.Registerer, log *slog.Logger) *Listener {
	l := &Listener{Listener: listener, max: max, log: cmp.Or(log, slog.Default()), authenticated: map[telematics.Actor]int{}}
	l.metrics = newMetrics(registerer, l.openConnections, l.unauthenticatedConnections)
	return l
}

// share returns how many authenticated connections one actor can have: without it, a single
// client's token could hold them all.
func (l *Listener) share() int { return max(minShare, l.max/shares) }

// Accept blocks until the next connection, which it may close others for; see Listener. Its error
// is the listener's.
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

// admit counts a connection, after evicting another one if necessary; nil: there is no room.
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

// forget stops counting a connection. The caller holds the lock.
func (l *Listener) forget(c *connection) *connection {
	if !c.gone {
		c.gone = true
		l.open--
		l.removeUnauthenticated(c)
		l.releaseShare(c)
	}
	return c
}

// releaseShare stops counting a connection against its actor's share. The caller holds the lock.
func (l *Listener) releaseShare(c *connection) {
	if !c.authenticated.Load() {
		return
	}
	if l.authenticated[c.actor]--; l.authenticated[c.actor] == 0 {
		delete(l.authenticated, c.actor)
	}
}

func (l *Listener) removeUnauthenticated(c *connection) {
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
	place *list.Element    // in unauthenticated; nil: it is authenticated or closed
	actor telematics.Actor // that has authenticated it
	gone  bool
}

// SetReadDeadline limits the deadline of an unauthenticated connection to unauthenticatedIdle. Its
// error is the connection's.
func (c *connection) SetReadDeadline(t time.Time) error {
	if latest := time.Now().Add(unauthenticatedIdle); t.After(latest) && !c.authenticated.Load() {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}

// markAuthenticated protects the connection, which has carried a valid token of the actor, from
// eviction. Beyond the actor's share it does nothing. A later request, also of another actor, may
// still mark it, for example if a proxy's connection is shared by many actors.
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
	l.removeUnauthenticated(c)
}

// Read reads; its error is the connection's.
func (c *connection) Read(p []byte) (int, error) {
	c.reads.Lock()
	defer c.reads.Unlock()
	return c.Conn.Read(p)
}

// Close closes the connection, and makes room for another. It first discards unread input, such as
// a request that the caller pipelined after its last answered one: otherwise the kernel sends a
// reset, and the caller may lose that answer. Its error is the connection's.
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

// discardInput reads the received input of a connection, within bounds.
func discardInput(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(discardWithin)) == nil {
		_, _ = io.CopyN(io.Discard, c, maxDiscarded) // the connection is closed in any case
	}
}

// CloseWrite lets net/http end its side before it closes the connection of a caller that is still
// sending. Its error is the connection's.
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
// actor. It does nothing for connections of other listeners.
func MarkAuthenticated(ctx context.Context, actor telematics.Actor) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.markAuthenticated(actor)
	}
}
