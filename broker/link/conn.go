package link

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// batchingConn takes fewer system calls than the client library, which reads the head of each
// packet byte by byte, four calls for a report, and writes acknowledgements separately. Messages
// are written immediately, with the acknowledgements that wait.
//
// It also decides whether the MQTT broker still reads and writes, by what the socket does. The
// library decides by the time at which its own goroutines run, and so drops sound connections when
// this process gets too little CPU time.
type batchingConn struct {
	net.Conn
	reader       *bufio.Reader
	writeTimeout time.Duration
	silence      time.Duration // without a byte, after which the MQTT broker is pinged
	connected    atomic.Bool   // the MQTT broker has accepted the connection
	closed       atomic.Bool   // by the library

	mu     sync.Mutex
	acks   []byte
	late   *time.Timer // nil: none waits
	broken error       // of the first write that failed

	limit   sync.Mutex // guards the next; a writer holds the other
	writeBy time.Time  // as the library says; zero: it says nothing
}

func batching(c net.Conn, writeTimeout, silence time.Duration) *batchingConn {
	b := &batchingConn{Conn: c, writeTimeout: writeTimeout, silence: silence}
	b.reader = bufio.NewReaderSize(readerFunc(b.receive), readAhead)
	return b
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Read returns the reason of a connection that was closed because it takes nothing: the library
// would believe that it has closed it itself. Bytes that were read ahead of a closed connection are
// dropped.
func (c *batchingConn) Read(p []byte) (int, error) {
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.reader.Read(p)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.broken != nil {
			err = c.broken
		}
	}
	return n, err
}

// receive reads from the socket, and pings an MQTT broker that is silent. Only a socket that is
// still empty at a last look is that of a lost connection: an answer to the ping is in it, however
// late this process runs.
func (c *batchingConn) receive(p []byte) (int, error) {
	if !c.connected.Load() { // the library has set a deadline
		return c.Conn.Read(p)
	}
	n, err := c.readWithin(c.silence, p)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if _, err := c.Write([]byte{packets.Pingreq << 4, 0}); err != nil {
		return 0, err
	}
	for _, wait := range [...]time.Duration{c.silence / 2, lastLook} {
		if n, err = c.readWithin(wait, p); !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return 0, fmt.Errorf("the MQTT broker does not answer a ping: %w", err)
}

func (c *batchingConn) readWithin(wait time.Duration, p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *batchingConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// SetDeadline is what the library limits connecting by. It removes the limit once the MQTT broker
// has accepted the connection.
func (c *batchingConn) SetDeadline(by time.Time) error {
	c.connected.Store(by.IsZero())
	return c.Conn.SetDeadline(by)
}

// SetWriteDeadline is for the packet that is written next, and also ends the write before which it
// waits.
func (c *batchingConn) SetWriteDeadline(by time.Time) error {
	c.limit.Lock()
	defer c.limit.Unlock()
	if c.writeBy = by; by.IsZero() {
		return nil // each write has its own
	}
	return c.Conn.SetWriteDeadline(by)
}

// Write takes one packet, as the library hands it over.
func (c *batchingConn) Write(packet []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil || !isAck(packet) || len(c.acks)+ackSize >= acksTogether*ackSize {
		return c.send(packet)
	}
	if c.acks = append(c.acks, packet...); c.late == nil {
		c.late = time.AfterFunc(ackAfter, c.flush)
	}
	return len(packet), nil
}

func isAck(packet []byte) bool { return len(packet) == ackSize && packet[0]>>4 == packets.Puback }

// flush writes the acknowledgements that wait. Where it cannot, the connection is of no use any
// more.
func (c *batchingConn) flush() {
	c.mu.Lock()
	var err error
	if len(c.acks) > 0 {
		_, err = c.send(nil)
	}
	c.mu.Unlock()
	if err != nil {
		_ = c.Conn.Close() // and the reader gets the reason
	}
}

// send writes a packet behind the acknowledgements that wait.
func (c *batchingConn) send(packet []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if c.late != nil {
		c.late.Stop()
		c.late = nil
	}
	all := packet
	if len(c.acks) > 0 {
		all = append(c.acks, packet...)
		c.acks = all[:0]
	}
	if err := c.writeInTime(all); err != nil {
		c.broken = fmt.Errorf("write to the MQTT broker: %w", err)
		return 0, c.broken
	}
	return len(packet), nil
}

// writeInTime fails where the socket takes no byte for as long as a write may last. A deadline that
// this process missed itself, because it did not run, says nothing of the socket: the write is
// tried once more.
func (c *batchingConn) writeInTime(packets []byte) error {
	for last := false; ; last = true {
		by, err := c.limitWrite()
		if err != nil {
			return err
		}
		n, err := c.Conn.Write(packets)
		if n > 0 || last || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(by) < missedBy {
			return err
		}
	}
}

// limitWrite returns until when a write may last that begins now.
func (c *batchingConn) limitWrite() (time.Time, error) {
	c.limit.Lock()
	defer c.limit.Unlock()
	now := time.Now()
	by := now.Add(c.writeTimeout)
	if c.writeBy.After(now) && c.writeBy.Before(by) {
		by = c.writeBy
	}
	return by, c.Conn.SetWriteDeadline(by)
}
