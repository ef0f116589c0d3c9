package ovms

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Tap is a proxy between a module and its broker that keeps all packets: only there, retain flags
// and QoS are visible as they were sent.
type Tap struct {
	listener net.Listener
	broker   string
	running  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	conns    []net.Conn
	module   []packets.ControlPacket // what the module sent
	arriving []packets.ControlPacket // what the broker sent to it
}

// NewTap listens on a free port of this machine.
func NewTap(brokerURL string) (*Tap, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &Tap{listener: listener, broker: strings.TrimPrefix(brokerURL, "tcp://")}
	t.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.running.Go(func() { t.pass(conn) })
		}
	})
	return t, nil
}

// URL is where the module connects.
func (t *Tap) URL() string { return "tcp://" + t.listener.Addr().String() }

// Close ends all connections.
func (t *Tap) Close() {
	_ = t.listener.Close()
	t.Cut()
	t.running.Wait()
}

// Cut ends the connections as a lost network does.
func (t *Tap) Cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, conn := range t.conns {
		_ = conn.Close()
	}
	t.conns = nil
}

func (t *Tap) pass(module net.Conn) {
	defer module.Close()
	broker, err := net.Dial("tcp", t.broker)
	if err != nil {
		return
	}
	defer broker.Close()
	t.mu.Lock()
	t.conns = append(t.conns, module, broker)
	t.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { t.copy(module, broker, &t.arriving) })
	t.copy(broker, module, &t.module)
	back.Wait()
}

// copy passes bytes on as they are read, whatever they mean.
func (t *Tap) copy(to, from net.Conn, kept *[]packets.ControlPacket) {
	defer to.Close()
	for {
		p, err := packets.ReadPacket(io.TeeReader(from, to))
		if err != nil {
			return
		}
		t.mu.Lock()
		*kept = append(*kept, p)
		t.mu.Unlock()
	}
}

// Sent returns all that the module sent, in order.
func (t *Tap) Sent() []packets.ControlPacket {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.module)
}

// Arrived returns all that the broker sent to the module, in order.
func (t *Tap) Arrived() []packets.ControlPacket {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.arriving)
}

// PacketsOf returns the packets of one type.
func PacketsOf[P packets.ControlPacket](all []packets.ControlPacket) []P {
	var of []P
	for _, p := range all {
		if p, ok := p.(P); ok {
			of = append(of, p)
		}
	}
	return of
}
