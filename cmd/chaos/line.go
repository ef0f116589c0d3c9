package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"motorpool/simulator/devstack"
)

// carGroups is how many lines the cars share: each may break alone.
const carGroups = 4

// line is the network between two parties: a proxy that can be cut, or poisoned.
type line struct {
	name  string
	proxy *toxiproxy.Proxy
}

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
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()) // serves nothing, but a proxy needs one
	proxy := toxiproxy.NewProxy(server, name, fmt.Sprintf("127.0.0.1:%d", port), to.Host)
	if err := proxy.Start(); err != nil {
		return "", fmt.Errorf("line %s: %w", name, err)
	}
	n[name] = &line{name: name, proxy: proxy}
	to.Host = proxy.Listen
	return to.String(), nil
}

// close ends every line.
func (n network) close() error {
	var all sync.WaitGroup
	for _, l := range n {
		all.Go(l.proxy.Stop)
	}
	all.Wait()
	return nil
}

// cut closes every connection, and refuses new ones until mend.
func (l *line) cut() { l.proxy.Stop() }

func (l *line) mend() error {
	if err := l.proxy.Start(); err != nil {
		return fmt.Errorf("mend %s: %w", l.name, err)
	}
	return nil
}

// toxin is what a line is poisoned with, in both directions. See toxiproxy's README.
type toxin struct {
	Type       string           `json:"type"`
	Name       string           `json:"name"`
	Stream     string           `json:"stream"`
	Attributes map[string]int64 `json:"attributes"`
}

func silence(fault) toxin { return toxin{Type: "timeout", Attributes: map[string]int64{"timeout": 0}} }

func delay(f fault) toxin {
	return toxin{Type: "latency", Attributes: map[string]int64{"latency": f.Amount, "jitter": f.Amount / 2}}
}

func slowness(f fault) toxin {
	return toxin{Type: "bandwidth", Attributes: map[string]int64{"rate": f.Amount}}
}

func reset(f fault) toxin {
	return toxin{Type: "reset_peer", Attributes: map[string]int64{"timeout": f.Amount}}
}

func tear(f fault) toxin {
	return toxin{Type: "limit_data", Attributes: map[string]int64{"bytes": f.Amount}}
}

var directions = []string{"upstream", "downstream"}

func (l *line) poison(t toxin) error {
	for _, direction := range directions {
		t.Stream, t.Name = direction, direction
		text, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("poison %s: %w", l.name, err)
		}
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
			return fmt.Errorf("poison %s: %w", l.name, err)
		}
	}
	return nil
}

// cure takes the poison out. A connection that was silent ends with it, as its peers have lost each other's words.
func (l *line) cure() error {
	cured := make(chan error, 1)
	go func() {
		for _, direction := range directions {
			if err := l.proxy.Toxics.RemoveToxic(context.Background(), direction); err != nil {
				cured <- fmt.Errorf("cure %s: %w", l.name, err)
				return
			}
		}
		cured <- nil
	}()
	select {
	case err := <-cured:
		return err
	case <-time.After(cureTimeout):
		return fmt.Errorf("cure %s: toxiproxy did not within %v", l.name, cureTimeout)
	}
}

// cureTimeout is long: toxiproxy first hands over what it holds, and the receiver may be frozen.
const cureTimeout = 60 * time.Second
