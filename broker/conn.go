package broker

import (
	"bufio"
	"net"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

const (
	// readAhead is some fifty reports.
	readAhead = 32 << 10
	// ackAfter is how long an acknowledgement waits for others, or for a message to go with.
	ackAfter = time.Millisecond
	// acksTogether is half of what MQTT brokers commonly let be unacknowledged.
	acksTogether = 10
)

// thriftyConn takes fewer system calls than the client library, which reads the head of each packet byte by byte, four calls for a
// report, and writes each acknowledgement by itself. Messages are written at once, with the acknowledgements that wait.
type thriftyConn struct {
	net.Conn
	reader *bufio.Reader

	mu   sync.Mutex
	acks []byte
	late *time.Timer // nil: none waits
}

func thrifty(c net.Conn) *thriftyConn {
	return &thriftyConn{Conn: c, reader: bufio.NewReaderSize(c, readAhead)}
}

func (c *thriftyConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// Write takes one packet, as the library hands it over.
func (c *thriftyConn) Write(packet []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isAck(packet) {
		return c.send(packet)
	}
	if len(c.acks)+len(packet) >= acksTogether*len(packet) {
		return c.send(packet)
	}
	if c.acks = append(c.acks, packet...); c.late == nil {
		c.late = time.AfterFunc(ackAfter, c.flush)
	}
	return len(packet), nil
}

func isAck(packet []byte) bool { return len(packet) == 4 && packet[0]>>4 == packets.Puback }

// flush writes the acknowledgements that wait. Where it cannot, the connection is of no use any more.
func (c *thriftyConn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.acks) == 0 {
		return
	}
	if _, err := c.send(nil); err != nil {
		_ = c.Conn.Close()
	}
}

// send writes a packet behind the acknowledgements that wait.
func (c *thriftyConn) send(packet []byte) (int, error) {
	if c.late != nil {
		c.late.Stop()
		c.late = nil
	}
	if len(c.acks) == 0 {
		return c.Conn.Write(packet)
	}
	c.acks = append(c.acks, packet...)
	_, err := c.Conn.Write(c.acks)
	c.acks = c.acks[:0]
	if err != nil {
		return 0, err
	}
	return len(packet), nil
}
