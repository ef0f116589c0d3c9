package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	v1 "motorpool/telematics/v1"
)

// claims are what instances of all installations at an MQTT broker announce to each other: probes
// that each receives through its connection for presence.
type claims struct {
	mu      sync.Mutex
	client  mqtt.Client // of that connection; nil: not connected
	mine    string      // name of the latest probe
	heard   []string
	askers  []string
	closed  error         // why the link is not admitted; nil: it is
	changed chan struct{} // closed when that changes
	asked   chan struct{} // holds one where another instance has asked
}

// Names of the probes; a claim follows.
const (
	claimProbe = "claim-" // of an instance whose installation has the MQTT broker
	seekProbe  = "seek-"  // of one that wants it
)

var errNotAdmitted = errors.New("not admitted yet")

func newClaims(await bool) *claims {
	c := &claims{changed: make(chan struct{}), asked: make(chan struct{}, 1)}
	if await {
		c.closed = errNotAdmitted
	}
	return c
}

// receive handles the name of a probe of any instance, this one included.
func (c *claims) receive(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if claim, ok := strings.CutPrefix(name, claimProbe); ok && len(c.heard) < maxClaims {
		c.heard = append(c.heard, claim)
	}
	asker, ok := strings.CutPrefix(name, seekProbe)
	if !ok {
		return
	}
	if len(c.askers) < maxClaims {
		c.askers = append(c.askers, asker)
	}
	if strings.HasPrefix(c.mine, claimProbe) {
		select {
		case c.asked <- struct{}{}:
		default:
		}
	}
}

// use sets the client that publishes claims; nil: there is none.
func (c *claims) use(client mqtt.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = client
}

// answer publishes the claim again, for an instance that asked.
func (c *claims) answer() {
	c.mu.Lock()
	client, mine := c.client, c.mine
	c.mu.Unlock()
	if client != nil && strings.HasPrefix(mine, claimProbe) {
		client.Publish(v1.ProbeTopic(mine), 1, false, []byte{}) // empty: older instances ignore it
	}
}

// state returns why the link is not admitted, and a channel that is closed when that changes.
func (c *claims) state() (changed <-chan struct{}, closed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed, c.closed
}

// Exchange announces a claim to all instances at this MQTT broker, or asks those that have it. It
// returns the claims that arrived since the last call; asked: those of instances that asked. It
// fails where the MQTT broker is not connected.
func (l *Link) Exchange(_ context.Context, claim string, asks bool) (heard, asked []string, err error) {
	c := l.claims
	c.mu.Lock()
	client := c.client
	heard, asked, c.heard, c.askers = c.heard, c.askers, nil, nil
	c.mine = claimProbe + claim
	if asks {
		c.mine = seekProbe + claim
	}
	mine := c.mine
	c.mu.Unlock()
	if client == nil {
		return heard, asked, l.presence.down()
	}
	client.Publish(v1.ProbeTopic(mine), 1, false, []byte{}) // empty: older instances ignore it
	return heard, asked, nil
}

// Admit lets the link subscribe and publish, or ends that, for a reason.
func (l *Link) Admit(why error) {
	c := l.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = why
	close(c.changed)
	c.changed = make(chan struct{})
}

// Patience is how long the answers of other instances take.
func (l *Link) Patience() time.Duration { return claimsWithin }

// admission blocks until the link is admitted, or the connection is lost. It returns a channel that
// is closed when the admission may have ended.
func (l *Link) admission(ctx context.Context, ln *connection, lost <-chan error) (changed <-chan struct{}, err error) {
	for {
		changed, closed := l.claims.state()
		if closed == nil {
			return changed, nil
		}
		ln.why.Store(&closed)
		select {
		case <-changed:
		case err := <-lost:
			return nil, fmt.Errorf("lost: %w", err)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
