package main

import (
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2/toxics"

	"motorpool/simulator/devstack"
)

// carGroups is how many lines the cars share: each may break alone.
const carGroups = 4

// The names of the lines.
func instanceName(i int) string          { return fmt.Sprintf("instance %d", i) }
func lineOf(i int, server string) string { return instanceName(i) + " – " + server }
func callersLine(i int) string           { return "callers – " + instanceName(i) }
func carsLine(group int) string          { return fmt.Sprintf("cars %d – %s", group, mosquittoServer) }
func groupOf(car int) int                { return car % carGroups }

func lineNames(instances int) []string {
	var names []string
	for i := range instances {
		names = append(names, lineOf(i, mosquittoServer), lineOf(i, redisServer), lineOf(i, postgresServer), callersLine(i))
	}
	for group := range carGroups {
		names = append(names, carsLine(group))
	}
	return names
}

// network is all lines, by name.
type network map[string]*line

// line is the network between two parties: a proxy that can be cut, or poisoned.
type line struct {
	name       string
	ours       string // where we listen
	theirs     string // where we connect to
	goroutines sync.WaitGroup

	mu       sync.Mutex   // guards what follows
	listener net.Listener // nil: cut
	toxin    toxics.Toxic // what the line does to those who use it
	links    map[*link]bool
}

// lay starts a line to an address, which is a URL, and returns the URL at our end of it.
func (n network) lay(name, address string) (string, error) {
	to, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("line %s: %w", name, err)
	}
	port, err := devstack.FreePort()
	if err != nil {
		return "", fmt.Errorf("line %s: %w", name, err)
	}
	l := &line{
		name: name, ours: fmt.Sprintf("127.0.0.1:%d", port), theirs: to.Host, toxin: &toxics.NoopToxic{}, links: map[*link]bool{},
	}
	if err := l.mend(); err != nil {
		return "", err
	}
	n[name] = l
	to.Host = l.ours
	return to.String(), nil
}

// close ends every line.
func (n network) close() error {
	for _, l := range n {
		l.cut()
		l.goroutines.Wait()
	}
	return nil
}

// cut closes every connection, and refuses new ones until mend.
func (l *line) cut() {
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

func (l *line) mend() error {
	listener, err := net.Listen("tcp", l.ours)
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

const dialTimeout = 5 * time.Second

// join connects a connection with the other end, and returns when it is over.
func (l *line) join(listener net.Listener, near net.Conn) {
	defer near.Close()
	far, err := net.DialTimeout("tcp", l.theirs, dialTimeout)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	if l.listener != listener { // cut meanwhile
		l.mu.Unlock()
		return
	}
	link := newLink(near, far, l.toxin)
	l.links[link] = true
	l.mu.Unlock()

	link.run()

	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.links, link)
}

// poison changes what the line does, to the connections that there are too.
func (l *line) poison(t toxics.Toxic) {
	l.mu.Lock()
	l.toxin = t
	var turning sync.WaitGroup
	for link := range l.links {
		turning.Go(func() { link.turn(t) })
	}
	l.mu.Unlock()
	turning.Wait()
}

// cure takes the poison out. A connection that was silent ends with it, as its peers have lost each other's words.
func (l *line) cure() { l.poison(&toxics.NoopToxic{}) }

// What a line is poisoned with, in both directions.

func silence(fault) toxics.Toxic { return &toxics.TimeoutToxic{} }

func delay(f fault) toxics.Toxic {
	return &toxics.LatencyToxic{Latency: f.Amount, Jitter: f.Amount / 2}
}

func slowness(f fault) toxics.Toxic { return &toxics.BandwidthToxic{Rate: f.Amount} }

func reset(f fault) toxics.Toxic { return &toxics.ResetToxic{Timeout: f.Amount} }

func tear(f fault) toxics.Toxic { return &toxics.LimitDataToxic{Bytes: f.Amount} }
