// Package link keeps the connections with the MQTT brokers: with each, one for commands and
// answers, one for telemetry, one for presence. Of a cluster, each node has the first two.
package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// Config configures the connections with an MQTT broker.
type Config struct {
	// Nodes are tcp://host:port or ssl://host:port: those of one cluster, or a single broker.
	Nodes    []string
	Username string
	Password string
	TLS      *tls.Config // with ssl only. Defaults to the system's roots.
	// Group returns the name of the shared subscriptions, a secret of the installation [TOP-3]. It
	// is called for each connection, as is Installation: an instance whose database is unavailable
	// must know them, once it has read them.
	Group func(context.Context) (string, error)
	// Installation returns the id of the installation, which client ids begin with, for people who
	// look at the MQTT broker. Nil: they do not.
	Installation func(context.Context) (string, error)
	// Guard recovers panics of the callbacks of single messages. Nil: they are only logged.
	Guard *guard.Guard
	// Dialects are those whose topics are subscribed to. Defaults to dialects.Spoken.
	Dialects telematics.Dialects

	ConnectTimeout time.Duration // for connecting, and for each step of it. Defaults to 5 s.
	// WriteTimeout is for one packet; a write that takes longer drops the connection. It must be
	// below the half second before a command's expiry in which nothing is published, or a message
	// could be sent too late [LAW-4]. Defaults to 400 ms.
	WriteTimeout time.Duration
	// Units returns the next units in the database, in an order of its choice, at most limit; after
	// is the last one of the page before, empty for the first page. Nil: no retained presence is
	// read.
	Units func(ctx context.Context, after telematics.Unit, limit int) ([]telematics.Unit, error)
	// CatchUpAfter is the first pause before retained presence that did not fit into the queue is
	// read again. Defaults to 250 ms.
	CatchUpAfter time.Duration
	// KeepAlive is at most 10 s, or a dead peer is noticed too late. Defaults to 5 s.
	KeepAlive time.Duration
	// Holds is called with what an MQTT broker says of itself, every few seconds: one of its System
	// topics. It must not block. Defaults to no call.
	Holds func(node, topic string, value float64)
	// AwaitAdmission makes the link subscribe to nothing of units, and publish no command, until
	// Admit. Defaults to no.
	AwaitAdmission bool
	Logger         *slog.Logger // Defaults to slog.Default().
}

// Receiver takes the messages of units. Its methods do not block [LAW-8].
type Receiver interface {
	Answer(telematics.Message)
	Report(telematics.Message)
	// Presence reports false where its queue is full: the link then reads the retained message
	// later.
	Presence(telematics.Message) bool
}

// Link is the connection with the MQTT broker: one for commands and answers, one
// for telemetry, one for presence, so that a flood on one delays no other.
//
// With a cluster, there is one for answers and one for telemetry at each node; presence comes from
// one node, and from the next one where that fails. So each node has members of the shared
// subscriptions: a cluster that prefers members at the publisher's node delivers nothing to a dead
// node. Where a node dies, commands are published through the others.
//
// All follow the same rules, each of which avoids a pitfall of the client library:
//
//   - A new client for every connection, and no reconnection by the library: it would
//     store a command, and send it seconds later [LAW-4].
//   - A write that does not end soon drops the connection: what waits in a full
//     socket is delivered late too.
//   - The socket decides whether a connection is lost, not the library's timers, which expire
//     where this process gets too little CPU time.
//   - A clean session: the MQTT broker keeps nothing while the service is not connected.
//   - Connected means that the subscription was granted: a denied one is not an error of
//     the library, and an answer to what was published before would be lost.
//   - Granted is not enough, since all are shared: a message must have come through one.
type Link struct {
	config   Config
	air      []*connection // for commands and answers, one for each node, in the order of their use
	reports  []*connection // one for each node
	presence *connection
	claims   *claims
}

// New assembles a link. It does no I/O before Run.
func New(c Config) *Link {
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 400*time.Millisecond)
	c.KeepAlive = cmp.Or(c.KeepAlive, 5*time.Second)
	c.CatchUpAfter = cmp.Or(c.CatchUpAfter, 250*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Dialects == nil {
		c.Dialects = dialects.Spoken
	}
	l := &Link{config: c, claims: newClaims(c.AwaitAdmission)}
	first := mathrand.IntN(max(len(c.Nodes), 1)) // so that not all instances use the same node
	nodes := slices.Concat(c.Nodes[first:], c.Nodes[:first])
	for _, node := range nodes {
		l.air = append(
			l.air,
			&connection{
				name: answersName, nodes: []string{node},
				filters: func(f telematics.Filters) []string { return nonEmpty(f.Answers) }, qos: 1,
				to: func(r Receiver) func(telematics.Message) bool { return always(r.Answer) },
			},
		)
		l.reports = append(
			l.reports,
			&connection{name: "telemetry", nodes: []string{node}, filters: func(f telematics.Filters) []string { return f.Reports }, qos: 1,
				to: func(r Receiver) func(telematics.Message) bool { return always(r.Report) }},
		)
	}
	// Every instance receives all presence messages. Retained ones are read separately.
	l.presence = &connection{
		name: "presence", nodes: nodes, filters: func(f telematics.Filters) []string { return nonEmpty(f.Presence) },
		own: true, qos: 0, to: func(r Receiver) func(telematics.Message) bool { return r.Presence },
	}
	return l
}

// answersName is the name of the connections for commands and answers.
const answersName = "answers"

// Run keeps the connections up, and passes messages to the receiver. It blocks until the context
// ends, and then returns nil.
func (l *Link) Run(ctx context.Context, to Receiver) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, ln := range slices.Concat(l.air, l.reports, []*connection{l.presence}) {
		group.Go(func() error {
			return l.config.Guard.Keep(
				ctx, "maintain mqtt connection",
				func(ctx context.Context) error { return l.maintain(ctx, ln, ln.to(to)) },
			)
		})
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Publish passes a message to a connection on which answers are received, and does not wait for an
// acknowledgement. A retransmission goes to all nodes: a cluster may have lost the unit's
// subscription at another node, and a unit drops duplicates. An error means that no MQTT client
// accepted the message. An accepted message may still be lost, or be late: that is what the expiry
// in a command is for.
func (l *Link) Publish(t telematics.Transmission) error {
	err, taken := errNotConnected, false
	for _, ln := range l.air {
		client := ln.client.Load()
		if client == nil {
			continue
		}
		failure := publish(*client, t)
		switch {
		case failure != nil:
			err = failure
		case !t.Repeated:
			return nil
		default:
			taken = true
		}
	}
	if taken {
		return nil
	}
	return err
}

func publish(client mqtt.Client, t telematics.Transmission) error {
	token := client.Publish(t.Topic, t.QoS, false, t.Payload) // [LAW-4] never retained
	select {
	case <-token.Done():
		if err := token.Error(); certainlyNotTaken(err) {
			return fmt.Errorf("publish: %w", err)
		}
	default: // taken; whether it was acknowledged changes nothing
	}
	return nil
}

// certainlyNotTaken reports whether the client refused a message before any byte of it
// could leave. After every other error it may have left.
func certainlyNotTaken(err error) bool {
	if err == nil {
		return false
	}
	switch err.Error() { // the library has a value for the first of these only
	case mqtt.ErrNotConnected.Error(), "publish was broken by timeout", "no message IDs available":
		return true
	}
	return false
}

var errNotConnected = errors.New("not connected to the MQTT broker")

// Ready returns why no command can be published, or no answer be received; nil: they can.
func (l *Link) Ready() error { return anyOf(l.air, (*connection).ready) }

// lostWithin reports whether a connection for commands has ended within that time.
func (l *Link) lostWithin(d time.Duration) bool {
	return slices.ContainsFunc(l.air, func(ln *connection) bool {
		lost := ln.lost.Load()
		return lost != nil && time.Since(*lost) < d
	})
}

// AllReady is Ready, and also returns why no telemetry or presence is received.
func (l *Link) AllReady() error {
	return errors.Join(l.Ready(), anyOf(l.reports, (*connection).ready), l.presence.ready())
}
