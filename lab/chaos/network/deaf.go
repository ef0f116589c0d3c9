package network

import (
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// Deafness is a toxic of lines to an MQTT broker: after Begin, no PUBLISH reaches the client, and
// all else does, answers to its pings included. Connections must begin with it.
type Deafness struct{ deaf atomic.Bool }

// NewDeafness returns a Deafness that has not begun.
func NewDeafness() *Deafness { return &Deafness{} }

// Begin makes clients deaf.
func (d *Deafness) Begin() { d.deaf.Store(true) }

const (
	mqttConnAck = 2
	mqttPublish = 3
)

// NewState returns what is known about one direction of a connection.
func (d *Deafness) NewState() any { return &packets{} }

// Pipe is a toxic's loop.
func (d *Deafness) Pipe(stub *toxics.ToxicStub) {
	state := stub.State.(*packets) // of NewState
	for {
		select {
		case <-stub.Interrupt:
			return
		case chunk := <-stub.Input:
			if chunk == nil {
				stub.Close()
				return
			}
			if chunk.Data = state.without(chunk.Data, d.deaf.Load()); len(chunk.Data) > 0 {
				stub.Output <- &stream.StreamChunk{Data: chunk.Data, Timestamp: chunk.Timestamp}
			}
		}
	}
}

// packets follows a stream of MQTT packets.
type packets struct {
	begun      bool
	fromServer bool
	header     []byte // of a packet of which the length is not complete yet
	left       int    // bytes of the packet's rest
	dropped    bool   // the packet is
}

// without returns the bytes of the next part of the stream; a deaf client's without the PUBLISH
// packets that begin in it.
func (p *packets) without(data []byte, deaf bool) []byte {
	var out []byte
	for len(data) > 0 {
		if p.left > 0 {
			n := min(p.left, len(data))
			if !p.dropped {
				out = append(out, data[:n]...)
			}
			p.left -= n
			data = data[n:]
			continue
		}
		p.header = append(p.header, data[0])
		data = data[1:]
		if len(p.header) == 1 || p.header[len(p.header)-1]&0x80 != 0 {
			continue // the length follows, or goes on
		}
		kind := p.header[0] >> 4
		if !p.begun {
			p.begun, p.fromServer = true, kind == mqttConnAck
		}
		for i, b := range p.header[1:] {
			p.left |= int(b&0x7f) << (7 * i)
		}
		p.dropped = deaf && p.fromServer && kind == mqttPublish
		if !p.dropped {
			out = append(out, p.header...)
		}
		p.header = p.header[:0]
	}
	return out
}
