package waitingroom

import (
	"bufio"
	"bytes"
	"net"
	"time"
)

// conn is a connection that was taken over, with what had been read of it already.
type conn struct {
	net.Conn
	ahead []byte
}

// newConn returns what net/http gives away. One that comes again is used again.
func newConn(taken net.Conn, read *bufio.Reader) *conn {
	c, again := taken.(*conn)
	if !again {
		c = &conn{Conn: taken}
	}
	if n := read.Buffered(); n > 0 {
		ahead, _ := read.Peek(n) // it is there
		c.ahead = append(bytes.Clone(ahead), c.ahead...)
	}
	return c
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.ahead) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.ahead)
	if c.ahead = c.ahead[n:]; len(c.ahead) == 0 {
		c.ahead = nil // what it was cut from
	}
	return n, nil
}

// NetConn returns the connection that was taken over.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite is what net/http asks for, to end its own side before it hangs up on a caller who is still sending.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// await returns when there is something to read, which whoever reads next will find, or when nothing came in time.
func (c *conn) await(atMost time.Duration) error {
	if len(c.ahead) > 0 {
		return nil
	}
	var deadline time.Time
	if atMost > 0 {
		deadline = time.Now().Add(atMost)
	}
	if err := c.SetReadDeadline(deadline); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := c.Conn.Read(first); err != nil {
		return err
	}
	c.ahead = first
	return c.SetReadDeadline(time.Time{})
}
