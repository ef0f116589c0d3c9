package firmware

import (
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// Recorder is a proxy between a module and its broker that keeps all packets: only there, retain
// flags and QoS are visible as they were sent.
type Recorder struct {
	listener net.Listener
	broker   string
	running  sync.WaitGroup

	mu       sync.Mutex // guards what follows
	conns    []net.Conn
	module   []packets.ControlPacket // what the module sent
	arriving []packets.ControlPacket // what the broker sent to it
}

// Record listens on a free port of this machine.
func Record(brokerURL string) (*Recorder, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Recorder{listener: listener, broker: strings.TrimPrefix(brokerURL, "tcp://")}
	r.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r.running.Go(func() { r.pass(conn) })
		}
	})
	return r, nil
}

// URL is where the module connects.
func (r *Recorder) URL() string { return "tcp://" + r.listener.Addr().String() }

// Close ends all connections.
func (r *Recorder) Close() {
	_ = r.listener.Close()
	r.Cut()
	r.running.Wait()
}

// Cut ends the connections as a lost network does.
func (r *Recorder) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.conns = nil
}

func (r *Recorder) pass(module net.Conn) {
	defer module.Close()
	broker, err := net.Dial("tcp", r.broker)
	if err != nil {
		return
	}
	defer broker.Close()
	r.mu.Lock()
	r.conns = append(r.conns, module, broker)
	r.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { r.copy(module, broker, &r.arriving) })
	r.copy(broker, module, &r.module)
	back.Wait()
}

// copy passes bytes on as they are read, whatever they mean.
func (r *Recorder) copy(to, from net.Conn, kept *[]packets.ControlPacket) {
	defer to.Close()
	for {
		p, err := packets.ReadPacket(io.TeeReader(from, to))
		if err != nil {
			return
		}
		r.mu.Lock()
		*kept = append(*kept, p)
		r.mu.Unlock()
	}
}

// Sent returns all that the module sent, in order.
func (r *Recorder) Sent() []packets.ControlPacket {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.module)
}

// Arrived returns all that the broker sent to the module, in order.
func (r *Recorder) Arrived() []packets.ControlPacket {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.arriving)
}

// Of returns the packets of one type.
func Of[P packets.ControlPacket](all []packets.ControlPacket) []P {
	var of []P
	for _, p := range all {
		if p, ok := p.(P); ok {
			of = append(of, p)
		}
	}
	return of
}
