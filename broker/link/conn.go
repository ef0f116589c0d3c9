package link

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	// readAhead is some fifty reports.
	readAhead = 32 << 10
	// ackAfter is how long an acknowledgement waits for others, or for a message to go with.
	ackAfter = 5 * time.Millisecond
	// acksTogether is half of what MQTT brokers commonly let be unacknowledged.
	acksTogether = 10
	ackSize      = 4 // bytes, MQTT 3.1.1 §3.4
)

// thriftyConn takes fewer system calls than the client library, which reads the head of each packet byte by byte, four calls for a
// report, and writes each acknowledgement by itself. Messages are written immediately, with the acknowledgements that wait.
type thriftyConn struct {
	net.Conn
	reader   *bufio.Reader
	patience time.Duration // of a write
	closed   atomic.Bool   // by the library

	mu     sync.Mutex
	acks   []byte
	late   *time.Timer // nil: none waits
	broken error       // of the first write that failed

	limit   sync.Mutex // guards the next; a writer holds the other
	writeBy time.Time  // as the library says; zero: it says nothing
}

func thrifty(c net.Conn, patience time.Duration) *thriftyConn {
	return &thriftyConn{Conn: c, reader: bufio.NewReaderSize(c, readAhead), patience: patience}
}

// Read returns the reason of a connection that was closed because it takes nothing: the library would believe that it has closed it itself.
// What was read ahead of a connection that is closed is as if it had not come.
func (c *thriftyConn) Read(p []byte) (int, error) {
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

func (c *thriftyConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// SetWriteDeadline is for the packet that is written next, and also ends the write before which it waits.
func (c *thriftyConn) SetWriteDeadline(by time.Time) error {
	c.limit.Lock()
	defer c.limit.Unlock()
	if c.writeBy = by; by.IsZero() {
		return nil // each write has its own
	}
	return c.Conn.SetWriteDeadline(by)
}

// Write takes one packet, as the library hands it over.
func (c *thriftyConn) Write(packet []byte) (int, error) {
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

// flush writes the acknowledgements that wait. Where it cannot, the connection is of no use any more.
func (c *thriftyConn) flush() {
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
func (c *thriftyConn) send(packet []byte) (int, error) {
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
	if err := c.limitWrite(); err != nil {
		return 0, err
	}
	if _, err := c.Conn.Write(all); err != nil {
		c.broken = fmt.Errorf("write to the MQTT broker: %w", err)
		return 0, c.broken
	}
	return len(packet), nil
}

func (c *thriftyConn) limitWrite() error {
	c.limit.Lock()
	defer c.limit.Unlock()
	by := time.Now().Add(c.patience)
	if !c.writeBy.IsZero() && c.writeBy.Before(by) {
		by = c.writeBy
	}
	return c.Conn.SetWriteDeadline(by)
}
