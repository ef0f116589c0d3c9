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

// batchingConn saves system calls: the client library reads the head of each packet byte by byte,
// four calls for a report, and writes acknowledgements separately. Messages are written
// immediately, with the acknowledgements that wait.
//
// It also detects a dead MQTT broker, by reads and writes of the socket. The library detects it by
// the time at which its goroutines run, and so drops working connections when this process gets too
// little CPU time.
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

	limit   sync.Mutex // guards writeBy; separate, since a writer holds mu
	writeBy time.Time  // the library's deadline; zero: none
}

func batching(c net.Conn, writeTimeout, silence time.Duration) *batchingConn {
	b := &batchingConn{Conn: c, writeTimeout: writeTimeout, silence: silence}
	b.reader = bufio.NewReaderSize(readerFunc(b.receive), readAhead)
	return b
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Read returns the error of the write that failed, where that has closed the connection: otherwise
// the library would believe that it has closed it itself. After Close, bytes that were read ahead
// are dropped.
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

// receive reads from the socket, and pings an MQTT broker that is silent. It reports a lost
// connection only where a last read finds the socket still empty: an answer to the ping would be in
// it, however late this process runs.
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

// SetDeadline is called by the library to limit the time of connecting. A zero time means that the
// MQTT broker has accepted the connection.
func (c *batchingConn) SetDeadline(by time.Time) error {
	c.connected.Store(by.IsZero())
	return c.Conn.SetDeadline(by)
}

// SetWriteDeadline limits the write of the next packet, and also a write in progress.
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

// flush writes the acknowledgements that wait. It closes the connection where that fails.
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

// send writes the acknowledgements that wait, and then the packet. The caller holds mu.
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

// writeInTime fails where the socket accepts no byte within the write timeout. Where this process
// missed the deadline because it did not run, that shows nothing about the socket: it tries once
// more.
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

// limitWrite sets and returns the deadline of a write that begins now.
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
