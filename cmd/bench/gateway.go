package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// gateway is one connection that carries the reports of many vehicles. A client library would cost more than what is
// measured: here a message is made by changing some digits, and an acknowledgement is counted by four bytes.
type gateway struct {
	conn   net.Conn
	from   *bufio.Reader
	acked  atomic.Int64
	packet uint16
	batch  bytes.Buffer
}

// dialTimeout bounds each step of connecting.
const dialTimeout = 5 * time.Second

func dialGateway(broker, password, id string) (*gateway, error) {
	u, err := url.Parse(broker)
	if err != nil {
		return nil, err
	}
	conn, err := net.DialTimeout("tcp", u.Host, dialTimeout)
	if err != nil {
		return nil, err
	}
	g := &gateway{conn: conn, from: bufio.NewReader(conn)}
	if err := g.connect(password, id); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to mosquitto: %w", err), conn.Close())
	}
	return g, nil
}

func (g *gateway) connect(password, id string) error {
	if err := g.conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return err
	}
	connect := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	connect.ProtocolName, connect.ProtocolVersion, connect.CleanSession = "MQTT", 4, true
	connect.ClientIdentifier, connect.Keepalive = id, 60
	connect.UsernameFlag, connect.Username = true, devstack.GatewayUser
	connect.PasswordFlag, connect.Password = true, []byte(password)
	if err := connect.Write(g.conn); err != nil {
		return err
	}
	answer, err := packets.ReadPacket(g.from)
	if err != nil {
		return err
	}
	if granted, ok := answer.(*packets.ConnackPacket); !ok || granted.ReturnCode != packets.Accepted {
		return fmt.Errorf("it answered %v", answer)
	}
	return g.conn.SetDeadline(time.Time{})
}

// countAcks reads what the broker answers, until the connection ends.
func (g *gateway) countAcks() error {
	var answer [4]byte
	for {
		if _, err := io.ReadFull(g.from, answer[:]); err != nil {
			return err
		}
		if answer[0] != packets.Puback<<4 || answer[1] != 2 {
			return fmt.Errorf("mosquitto said %x, which is no acknowledgement", answer)
		}
		g.acked.Add(1)
	}
}

// add puts a vehicle's next report into the batch.
func (g *gateway) add(r *report, sequence int, instant []byte) {
	if g.packet++; g.packet == 0 {
		g.packet = 1
	}
	r.become(sequence, instant, g.packet)
	g.batch.Write(r.message)
}

// send writes the batch.
func (g *gateway) send() error {
	_, err := g.batch.WriteTo(g.conn)
	return err
}

// reportOf makes the message by which a unit reports.
func reportOf(unit telematics.Unit) (*report, error) {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.Qos, p.TopicName, p.MessageID, p.Payload = 1, telematics.TelemetryChannel.Topic(unit), 1, payloadOf()
	var message bytes.Buffer
	if err := p.Write(&message); err != nil {
		return nil, err
	}
	return newReport(message.Bytes(), unit), nil
}
