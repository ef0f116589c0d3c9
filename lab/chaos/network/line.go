// Package network is the connections of a test world: TCP proxies that can be cut, silenced,
// delayed, slowed, reset and torn.
package network

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"

	"motorpool/simulator/devstack"
)

// Network is all lines, by name.
type Network map[string]*Line

// Line is a proxy between two parties.
type Line struct {
	name       string
	address    string // where it listens
	goroutines sync.WaitGroup

	mu       sync.Mutex   // guards what follows
	target   string       // where it connects to
	listener net.Listener // nil: cut
	toxic    toxics.Toxic // the present fault of the line
	links    map[*link]bool
}

// Add starts a line to a URL, and returns the URL that leads through it.
func (n Network) Add(name, target string) (string, error) {
	to, err := url.Parse(target)
	if err != nil {
		return "", fmt.Errorf("line %s: %w", name, err)
	}
	port, err := devstack.FreePort()
	if err != nil {
		return "", fmt.Errorf("line %s: %w", name, err)
	}
	l := &Line{
		name: name, address: fmt.Sprintf("127.0.0.1:%d", port), target: to.Host, toxic: &toxics.NoopToxic{}, links: map[*link]bool{},
	}
	if err := l.Mend(); err != nil {
		return "", err
	}
	n[name] = l
	to.Host = l.address
	return to.String(), nil
}

// Close ends every line.
func (n Network) Close() error {
	for _, l := range n {
		l.Cut()
		l.goroutines.Wait()
	}
	return nil
}

// Cut closes every connection, and refuses new ones until Mend.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close() // what matters is that it is closed
		l.listener = nil
	}
	for link := range l.links {
		link.close()
	}
}

// Mend ends a Cut.
func (l *Line) Mend() error {
	listener, err := net.Listen("tcp", l.address)
	if err != nil {
		return fmt.Errorf("mend %s: %w", l.name, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener = listener
	l.goroutines.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			l.goroutines.Go(func() { l.join(listener, near) })
		}
	})
	return nil
}

// MendTo ends a Cut of a line whose other end is now at a URL.
func (l *Line) MendTo(target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return fmt.Errorf("mend %s: %w", l.name, err)
	}
	l.mu.Lock()
	l.target = to.Host
	l.mu.Unlock()
	return l.Mend()
}

const dialTimeout = 5 * time.Second

// join connects a connection with the other end, and returns when it is closed.
func (l *Line) join(listener net.Listener, near net.Conn) {
	defer near.Close()
	l.mu.Lock()
	target := l.target
	l.mu.Unlock()
	far, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	if l.listener != listener { // cut meanwhile
		l.mu.Unlock()
		return
	}
	link := newLink(near, far, l.toxic)
	l.links[link] = true
	l.mu.Unlock()

	link.run()

	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, link)
}

// Toxic is a fault of a line: it affects the connections through it, in both directions.
type Toxic = toxics.Toxic

// Silence keeps connections open, and discards all data.
func Silence() Toxic { return &toxics.TimeoutToxic{} }

// Delay delays data by milliseconds, and half as many more.
func Delay(ms int64) Toxic { return &toxics.LatencyToxic{Latency: ms, Jitter: ms / 2} }

// Slowness limits the rate, in kB/s.
func Slowness(rate int64) Toxic { return &toxics.BandwidthToxic{Rate: rate} }

// Reset breaks connections after milliseconds.
func Reset(ms int64) Toxic { return &toxics.ResetToxic{Timeout: ms} }

// Tear closes connections after a number of bytes.
func Tear(bytes int64) Toxic { return &toxics.LimitDataToxic{Bytes: bytes} }

// SetToxic sets the fault of the line, also for open connections.
func (l *Line) SetToxic(t Toxic) {
	l.mu.Lock()
	l.toxic = t
	var turning sync.WaitGroup
	for link := range l.links {
		turning.Go(func() { link.turn(t) })
	}
	l.mu.Unlock()
	turning.Wait()
}

// RemoveToxic ends SetToxic. It also closes connections that were silent: they have lost data.
func (l *Line) RemoveToxic() { l.SetToxic(&toxics.NoopToxic{}) }
