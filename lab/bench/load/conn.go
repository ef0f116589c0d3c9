package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Broker is an MQTT broker, with an account.
type Broker struct{ URL, User, Password string }

// conn is an MQTT connection. A client library would take more CPU time and memory than what is
// measured.
type conn struct {
	net.Conn
	from    *bufio.Reader
	granted chan []byte  // return codes of subscriptions
	acked   atomic.Int64 // messages

	writing sync.Mutex // guards what follows
	id      uint16     // of the last packet
	batch   bytes.Buffer
}

const dialTimeout = 5 * time.Second

// someAddress returns one of fifty local addresses. The kernel's search for a free port becomes
// slow where half of an address's ports are in use.
func someAddress() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+rand.IntN(50)))} }

// dial connects a client. listen must run while the connection is used.
func (b Broker) dial(ctx context.Context, client string) (c *conn, err error) {
	target, err := url.Parse(b.URL)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: dialTimeout, LocalAddr: someAddress()}
	socket, err := dialer.DialContext(ctx, "tcp", target.Host)
	if err != nil {
		return nil, err
	}
	c = &conn{Conn: socket, from: bufio.NewReaderSize(socket, 1<<10), granted: make(chan []byte, 1)}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession, connect.ClientIdentifier = "MQTT", 4, true, client
	connect.UsernameFlag, connect.Username, connect.PasswordFlag, connect.Password = true, b.User, true, []byte(b.Password)
	var answer packets.ControlPacket
	if err = c.send(connect); err == nil {
		answer, err = packets.ReadPacket(c.from)
	}
	if granted, ok := answer.(*packets.ConnackPacket); err != nil || !ok || granted.ReturnCode != packets.Accepted {
		return nil, errors.Join(fmt.Errorf("connect %s: the MQTT broker answers %v: %w", client, answer, err), socket.Close())
	}
	return c, nil
}

// listen calls handle for each message until the connection ends, and returns why it has.
func (c *conn) listen(handle func(*packets.PublishPacket)) error {
	for {
		head, err := c.from.Peek(1)
		if err != nil {
			return err
		}
		if head[0]>>4 == packets.Puback { // only their number matters
			if _, err := c.from.Discard(4); err != nil {
				return err
			}
			c.acked.Add(1)
			continue
		}
		packet, err := packets.ReadPacket(c.from)
		if err != nil {
			return err
		}
		switch p := packet.(type) {
		case *packets.SubackPacket:
			c.granted <- p.ReturnCodes
		case *packets.PublishPacket:
			handle(p)
		}
	}
}

// subscribe returns when the subscriptions, at QoS 1, are granted.
func (c *conn) subscribe(filters []string) error {
	p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	p.Qos, p.MessageID, p.Topics, p.Qoss = 1, 1, filters, bytes.Repeat([]byte{1}, len(filters))
	if err := c.send(p); err != nil {
		return err
	}
	select {
	case codes := <-c.granted:
		if !bytes.Equal(codes, p.Qoss) {
			return fmt.Errorf("the MQTT broker denies a subscription to %s or one of %d others", filters[0], len(filters)-1)
		}
		return nil
	case <-time.After(dialTimeout):
		return errors.New("the MQTT broker does not answer a subscription")
	}
}

// publication is a message at QoS 1.
func publication(topic string, payload []byte) *packets.PublishPacket {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.Qos, p.TopicName, p.Payload = 1, topic, payload
	return p
}

// send writes packets together.
func (c *conn) send(all ...packets.ControlPacket) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	for _, p := range all {
		if message, ok := p.(*packets.PublishPacket); ok {
			if c.id++; c.id == 0 {
				c.id = 1
			}
			message.MessageID = c.id
		}
		if err := p.Write(&c.batch); err != nil {
			return err
		}
	}
	_, err := c.batch.WriteTo(c.Conn)
	return err
}
