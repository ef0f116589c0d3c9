package failover

import (
	"io"
	"net"
	"sync"
	"time"
)

// proxy passes connections on to a server, which can be exchanged.
type proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex // guards what follows
	target string     // empty: connections are refused
	open   map[net.Conn]bool
}

func startProxy(target string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, target: target, open: map[net.Conn]bool{}}
	p.running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.pass(near) })
		}
	})
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// point ends all connections, and passes new ones on to another server; empty: to none.
func (p *proxy) point(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for conn := range p.open {
		_ = conn.Close() // what matters is that it is closed
	}
}

func (p *proxy) close() error {
	err := p.listener.Close()
	p.point("")
	p.running.Wait()
	return err
}

const dialTimeout = 2 * time.Second

func (p *proxy) pass(near net.Conn) {
	defer near.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if target == "" {
		return
	}
	far, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil {
		return
	}
	defer far.Close()
	p.mu.Lock()
	if p.target != target { // exchanged meanwhile
		p.mu.Unlock()
		return
	}
	p.open[near], p.open[far] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for to, from := range map[net.Conn]net.Conn{near: far, far: near} {
		both.Go(func() {
			_, _ = io.Copy(to, from) // the end of one direction ends both
			_, _ = near.Close(), far.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, near)
	delete(p.open, far)
}
