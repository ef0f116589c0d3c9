package network

import (
	"io"
	"net"
	"sync"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// link is a connection through a line: a pipe in each direction.
type link struct {
	near, far net.Conn
	there     *pipe
	back      *pipe
}

func newLink(near, far net.Conn, t toxics.Toxic) *link {
	return &link{near: near, far: far, there: newPipe(t), back: newPipe(t)}
}

// run returns when the connection is closed at both ends.
func (l *link) run() {
	var both sync.WaitGroup
	both.Go(func() { l.there.copy(l.far, l.near, l.close) })
	both.Go(func() { l.back.copy(l.near, l.far, l.close) })
	both.Wait()
}

func (l *link) turn(t toxics.Toxic) {
	var both sync.WaitGroup
	for _, p := range []*pipe{l.there, l.back} {
		both.Go(func() { p.turn(t) })
	}
	both.Wait()
}

// close closes both ends: a half-open connection is of no use.
func (l *link) close() {
	_ = l.near.Close() // it may be closed already
	_ = l.far.Close()
}

// pipe copies bytes in one direction, through a toxic of toxiproxy.
type pipe struct {
	in, out chan *stream.StreamChunk

	mu    sync.Mutex // guards what follows
	stub  *toxics.ToxicStub
	toxic toxics.Toxic
}

// inTransit is how many chunks may be in a toxic: a delayed one must not hold up the next.
const inTransit = 1024

func newPipe(t toxics.Toxic) *pipe {
	p := &pipe{in: make(chan *stream.StreamChunk, inTransit), out: make(chan *stream.StreamChunk)}
	p.stub = toxics.NewToxicStub(p.in, p.out)
	p.apply(t)
	return p
}

func (p *pipe) apply(t toxics.Toxic) {
	p.toxic = t
	if s, ok := t.(toxics.StatefulToxic); ok {
		p.stub.State = s.NewState()
	}
	// Returns when the pipe ends, or at the next turn.
	go p.stub.Run(&toxics.ToxicWrapper{Toxic: t, Toxicity: 1})
}

// turn replaces the toxic, unless the pipe has ended.
func (p *pipe) turn(t toxics.Toxic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stub.InterruptToxic() {
		return
	}
	if c, ok := p.toxic.(toxics.CleanupToxic); ok {
		c.Cleanup(p.stub)
	}
	if !p.stub.Closed() {
		p.apply(t)
	}
}

// copy returns when both ends are closed. It reads what the toxic lets through even when it cannot
// be written: a toxic that still holds data can never be replaced.
func (p *pipe) copy(to, from net.Conn, end func()) {
	var reading sync.WaitGroup
	reading.Go(func() {
		in := stream.NewChanWriter(p.in)
		_, _ = io.Copy(in, from) // an error is an end, too
		_ = in.Close()
	})
	for chunk := range p.out {
		if _, err := to.Write(chunk.Data); err != nil {
			end()
		}
	}
	p.mu.Lock()
	if _, hard := p.toxic.(*toxics.ResetToxic); hard {
		closeWithReset(to, from)
	}
	p.mu.Unlock()
	end()
	for range p.in { // a toxic that has returned reads no more
	}
	reading.Wait()
}

// closeWithReset makes connections close with RST, and discard unsent data.
func closeWithReset(all ...net.Conn) {
	for _, c := range all {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // it may be closed already
		}
	}
}
