package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/mosquitto"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// connectedUnit is a unit with its connection. A client library would take more memory than the
// MQTT broker.
type connectedUnit struct {
	unit
	is   telematics.Unit
	conn net.Conn
	from *bufio.Reader

	writing sync.Mutex
	answers uint16 // the number of the latest answer, below firstReport
	reports uint16 // likewise, and the sequence number of the latest report
}

const (
	readBuffer = 512
	// firstReport begins the packet ids of reports, so that their acknowledgements are known.
	firstReport  = 1 << 15
	writeTimeout = 10 * time.Second
)

// dial connects the unit of the nth vehicle, and returns it when it is subscribed and its presence
// is retained.
func (c *ConnectedUnits) dial(ctx context.Context, n int) (u *connectedUnit, err error) {
	target, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	// Other brokers' units use other addresses: a port is searched by the local address alone.
	local := net.IPv4(127, 0, byte(1+c.First), byte(1+n/c.Every/connectionsPerAddress))
	dialer := net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{IP: local}}
	conn, err := dialer.DialContext(ctx, "tcp", target.Host)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	u = &connectedUnit{is: UnitOf(c.Vehicles.ID(n)), conn: conn, from: bufio.NewReaderSize(conn, readBuffer)}
	if err := conn.SetReadDeadline(time.Now().Add(dialTimeout)); err != nil {
		return nil, err
	}
	if err := u.send(u.connectPacket(c.Secret, c.session)); err != nil {
		return nil, err
	}
	answer, err := packets.ReadPacket(u.from)
	if granted, ok := answer.(*packets.ConnackPacket); err != nil || !ok || granted.ReturnCode != packets.Accepted {
		return nil, fmt.Errorf("the MQTT broker answers %v: %w", answer, err)
	}
	if err := u.send(u.subscribePacket(), u.presencePacket(c.session)); err != nil {
		return nil, err
	}
	for left := 2; left > 0; { // commands may come between them
		packet, err := packets.ReadPacket(u.from)
		if err != nil {
			return nil, err
		}
		switch p := packet.(type) {
		case *packets.SubackPacket:
			if p.ReturnCodes[0] != 1 {
				return nil, errors.New("the MQTT broker denies the subscription")
			}
			left--
		case *packets.PubackPacket:
			left--
		default:
			c.handle(u, packet)
		}
	}
	return u, conn.SetReadDeadline(time.Time{})
}

// listen handles packets until the connection ends.
func (c *ConnectedUnits) listen(ctx context.Context, u *connectedUnit) {
	for {
		packet, err := packets.ReadPacket(u.from)
		if err != nil {
			if ctx.Err() == nil {
				c.lost.Add(1)
			}
			return
		}
		c.handle(u, packet)
	}
}

// handle answers a command, and counts the acknowledgement of a report. If a write fails, the
// connection is lost, which listen notices.
func (c *ConnectedUnits) handle(u *connectedUnit, packet packets.ControlPacket) {
	switch p := packet.(type) {
	case *packets.PubackPacket:
		if p.MessageID >= firstReport {
			c.acked.Add(1)
		}
	case *packets.PublishPacket:
		ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		ack.MessageID = p.MessageID
		_, answer, _ := u.execute(c.keys, u.is, p.Payload)
		if answer == nil {
			_ = u.send(ack)
			return
		}
		u.writing.Lock()
		u.answers = u.answers%(firstReport-1) + 1
		id := u.answers
		u.writing.Unlock()
		_ = u.send(ack, publication(v1.AckChannel.Topic(u.is), id, false, answer))
	}
}

// report publishes a report.
func (u *connectedUnit) report(at string) error {
	u.writing.Lock()
	u.reports = (u.reports + 1) % firstReport
	sequence := u.reports
	u.writing.Unlock()
	return u.send(publication(v1.TelemetryChannel.Topic(u.is), firstReport+sequence, false, Report(int(sequence), at)))
}

func (u *connectedUnit) connectPacket(secret, session string) *packets.ConnectPacket {
	p := packets.NewControlPacket(packets.Connect).(*packets.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.CleanSession, p.Keepalive = "MQTT", 4, true, uint16(keepAlive.Seconds())
	p.ClientIdentifier = string(u.is)
	p.UsernameFlag, p.Username, p.PasswordFlag, p.Password = true, string(u.is), true, []byte(mosquitto.UnitPassword(secret, string(u.is)))
	p.WillFlag, p.WillQos, p.WillRetain, p.WillTopic = true, 1, true, v1.PresenceChannel.Topic(u.is)
	p.WillMessage = v1.EncodePresence(telematics.Presence{Status: telematics.Offline, Session: session})
	return p
}

func (u *connectedUnit) subscribePacket() *packets.SubscribePacket {
	p := packets.NewControlPacket(packets.Subscribe).(*packets.SubscribePacket)
	p.Qos, p.MessageID, p.Topics, p.Qoss = 1, 1, []string{v1.CommandChannel.Topic(u.is)}, []byte{1}
	return p
}

func (u *connectedUnit) presencePacket(session string) *packets.PublishPacket {
	return publication(v1.PresenceChannel.Topic(u.is), 2, true, v1.EncodePresence(telematics.Presence{Status: telematics.Online, Session: session, At: time.Now()}))
}

func publication(topic string, id uint16, retain bool, payload []byte) *packets.PublishPacket {
	p := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	p.Qos, p.MessageID, p.Retain, p.TopicName, p.Payload = 1, id, retain, topic, payload
	return p
}

// send writes packets together.
func (u *connectedUnit) send(all ...packets.ControlPacket) error {
	var batch bytes.Buffer
	for _, p := range all {
		if err := p.Write(&batch); err != nil {
			return err
		}
	}
	return u.write(batch.Bytes())
}

func (u *connectedUnit) write(message []byte) error {
	u.writing.Lock()
	defer u.writing.Unlock()
	if err := u.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := u.conn.Write(message)
	return err
}
