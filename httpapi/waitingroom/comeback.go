package waitingroom

import (
	"net"
	"sync"
)

// comeback is the listener of connections that come back from the waiting room.
type comeback struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	addr net.Addr
}

func newComeback() *comeback {
	return &comeback{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// give has a connection served, and reports false where nobody serves any more.
func (c *comeback) give(conn net.Conn) bool {
	select {
	case c.conns <- conn:
		return true
	case <-c.closed:
		return false
	}
}

func (c *comeback) Accept() (net.Conn, error) {
	select {
	case conn := <-c.conns:
		return conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

func (c *comeback) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// address says where connections were accepted first.
func (c *comeback) address(a net.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addr = a
}

func (c *comeback) Addr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addr
}
