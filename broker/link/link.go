// Package link keeps the connections with the MQTT brokers: with each, one for commands and
// answers, one for telemetry, one for presence.
package link

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
	"motorpool/telematics/dialects"
	v1 "motorpool/telematics/v1"
)

// Config says how to reach an MQTT broker.
type Config struct {
	// Nodes are tcp://host:port or ssl://host:port: those of one cluster, or a single broker. Each
	// connection uses one, and the next one where it fails.
	Nodes    []string
	Username string
	Password string
	TLS      *tls.Config // with ssl only. Defaults to the system's roots.
	// Group returns the name of the shared subscriptions, a secret of the installation [TOP-3].
	// It is asked for each connection.
	Group func(context.Context) (string, error)
	// Dialects are those that are listened to. Defaults to dialects.Spoken.
	Dialects telematics.Dialects

	ConnectTimeout time.Duration // for connecting, and for each step of it. Defaults to 5 s.
	// WriteTimeout is for one packet; a longer one drops the connection. It is below the half
	// second before its expiry in which nothing is published, or a message could leave too late
	// [LAW-4]. Defaults to 400 ms.
	WriteTimeout time.Duration
	// Units returns the next units on record, in an order of its choice, at most limit; after is
	// the last one of the page before, empty for the first page. Nil: nothing that is retained is
	// read.
	Units func(ctx context.Context, after telematics.Unit, limit int) ([]telematics.Unit, error)
	// CatchUpAfter is the first pause before retained presence that did not fit into the queue is
	// read again. Defaults to 250 ms.
	CatchUpAfter time.Duration
	// KeepAlive is at most 10 s, or a dead peer is noticed too late. Defaults to 5 s.
	KeepAlive time.Duration
	Logger    *slog.Logger // Defaults to slog.Default().
}

// Receiver takes what units say. Its methods hand over and return [LAW-8].
type Receiver interface {
	Answer(telematics.Message)
	Report(telematics.Message)
	// Presence reports false for a message that did not fit: the link then reads what is retained.
	Presence(telematics.Message) bool
}

// Link is the connection with the MQTT broker: one for commands and answers, one
// for telemetry, one for presence, so that a flood on one delays no other.
//
// Each lives by one recipe, and each step of it answers a trap of the client library:
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
	config Config
	lines  []*line
	air    *line
}

// line is one connection and its subscriptions, one for each dialect.
type line struct {
	name    string // in the log
	filters func(telematics.Filters) []string
	own     bool // its group has no other member: each instance hears everything
	qos     byte
	to      func(Receiver) func(telematics.Message) bool
	client  atomic.Pointer[mqtt.Client] // nil: nothing may be published
	// The latest connection ended, or did not come up; nil: there was none.
	why atomic.Pointer[error]
	// When the latest connection that came up ended, by the clock of Unix; 0: none did.
	lost atomic.Int64
	node int // of the next connection, in Nodes
}

// New assembles a link. It does nothing before Run.
func New(c Config) *Link {
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 5*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 400*time.Millisecond)
	c.KeepAlive = cmp.Or(c.KeepAlive, 5*time.Second)
	c.CatchUpAfter = cmp.Or(c.CatchUpAfter, 250*time.Millisecond)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Dialects == nil {
		c.Dialects = dialects.Spoken
	}
	air := &line{name: "answers", filters: func(f telematics.Filters) []string { return one(f.Answers) }, qos: 1,
		to: func(r Receiver) func(telematics.Message) bool { return always(r.Answer) }}
	l := &Link{config: c, air: air, lines: []*line{
		air,
		{name: "telemetry", filters: func(f telematics.Filters) []string { return f.Reports }, qos: 1,
			to: func(r Receiver) func(telematics.Message) bool { return always(r.Report) }},
		// Every instance hears all of presence. What is retained is read separately.
		{name: "presence", filters: func(f telematics.Filters) []string { return one(f.Presence) }, own: true, qos: 0,
			to: func(r Receiver) func(telematics.Message) bool { return r.Presence }},
	}}
	first := mathrand.IntN(max(len(c.Nodes), 1)) // so that not all instances use the same node
	for _, ln := range l.lines {
		ln.node = first
	}
	return l
}

// one returns a list of what is not empty.
func one(filter string) []string {
	if filter == "" {
		return nil
	}
	return []string{filter}
}

func always(take func(telematics.Message)) func(telematics.Message) bool {
	return func(m telematics.Message) bool { take(m); return true }
}

// Run keeps the connections up, and hands what arrives to the receiver, until the
// context ends.
func (l *Link) Run(ctx context.Context, to Receiver) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, ln := range l.lines {
		group.Go(func() error { return l.keep(ctx, ln, ln.to(to)) })
	}
	if err := group.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Publish hands a message to the connection on which its answer is received. An
// error means that the client did not take it. What it took may still be lost, or
// be late: that is what the expiry in a command is for.
func (l *Link) Publish(t telematics.Transmission) error {
	client := l.air.client.Load()
	if client == nil {
		return errNotConnected
	}
	token := (*client).Publish(t.Topic, t.QoS, false, t.Payload) // [LAW-4] never retained
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

// Ready says whether commands can be published and their answers be received.
func (l *Link) Ready() error { return l.air.ready() }

// lostWithin reports whether the latest connection for commands has ended within that time.
func (l *Link) lostWithin(d time.Duration) bool {
	lost := l.air.lost.Load()
	return lost != 0 && time.Since(time.Unix(0, lost)) < d
}

// AllReady says whether telemetry and presence are received, too.
func (l *Link) AllReady() error {
	var missing []error
	for _, ln := range l.lines {
		missing = append(missing, ln.ready())
	}
	return errors.Join(missing...)
}

func (ln *line) ready() error {
	if ln.client.Load() != nil {
		return nil
	}
	if why := ln.why.Load(); why != nil {
		return fmt.Errorf("%w (%s): %w", errNotConnected, ln.name, *why)
	}
	return fmt.Errorf("%w (%s)", errNotConnected, ln.name)
}

// keep connects, again and again, until the context ends.
func (l *Link) keep(ctx context.Context, ln *line, take func(telematics.Message) bool) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstReconnect),
		backoff.WithMaxInterval(longestReconnect),
		backoff.WithMaxElapsedTime(0), // never give up
	)
	for {
		err := l.connection(ctx, ln, take, wait.Reset)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ln.why.Store(&err)
		ln.node = (ln.node + 1) % len(l.config.Nodes)
		pause := wait.NextBackOff()
		l.config.Logger.Warn("mqtt connection failed, retrying", "connection", ln.name, "err", err, "retry_in", pause.Round(time.Millisecond))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// connection is the life of one connection: it returns when it was lost, or never came up.
func (l *Link) connection(ctx context.Context, ln *line, take func(telematics.Message) bool, up func()) error {
	group, err := l.group(ctx)
	if err != nil {
		return err
	}
	lost := make(chan error, 1)
	node := l.config.Nodes[ln.node]
	client := mqtt.NewClient(l.options(node, lost))
	defer client.Disconnect(0)
	if err := l.await(ctx, client.Connect()); err != nil {
		return fmt.Errorf("connect: %w%s", err, hint(err))
	}
	heard, probed := func(m telematics.Message) { take(m) }, func(string) {}
	var missed *catchUp
	if ln.own {
		group = rand.Text()
		missed = newCatchUp(l, client, take)
		heard, probed = missed.take, missed.takeProbe
	}
	for _, dialect := range l.config.Dialects {
		if err := l.subscribe(ctx, client, ln, group, dialect, heard, probed); err != nil {
			return err
		}
	}
	if err := l.probe(ctx, client, lost); err != nil {
		return err
	}
	ln.client.Store(&client)
	defer func() {
		ln.lost.Store(time.Now().UnixNano())
		ln.client.Store(nil)
	}()
	up()
	l.config.Logger.Info("mqtt connected", "connection", ln.name, "node", host(node))
	failed := make(chan error, 1)
	if missed != nil {
		var reading sync.WaitGroup
		ctx, stop := context.WithCancel(ctx)
		reading.Go(func() { failed <- missed.run(ctx) })
		defer reading.Wait()
		defer stop()
	}
	for {
		select {
		case err := <-lost:
			return fmt.Errorf("lost: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			if err != nil {
				return err
			}
		}
	}
}

// subscribe asks for what the line carries of one dialect. The subscription by which a
// message comes says in which dialect it is.
func (l *Link) subscribe(ctx context.Context, client mqtt.Client, ln *line, group string, d telematics.Dialect, take func(telematics.Message), probed func(string)) error {
	filters := map[string]byte{}
	for _, filter := range ln.filters(d.Filters()) {
		filters[telematics.SharedFilter(group, filter)] = ln.qos
	}
	if len(filters) == 0 {
		return nil
	}
	subscribed := client.SubscribeMultiple(filters, func(_ mqtt.Client, m mqtt.Message) {
		unit, subject, err := d.ParseTopic(m.Topic())
		if err != nil {
			l.config.Logger.Debug("message on an unexpected topic", "connection", ln.name, "err", err)
			return
		}
		message := telematics.Message{Dialect: d, Unit: unit, Subject: subject, Payload: m.Payload(), Retained: m.Retained()}
		if name, ok := v1.ProbeName(message); ok {
			probed(name)
		} else {
			take(message)
		}
	})
	if err := l.await(ctx, subscribed); err != nil {
		return fmt.Errorf("subscribe to protocol %s: %w", d.Protocol(), err)
	}
	return granted(subscribed.(*mqtt.SubscribeToken))
}

// hint returns what to check when the MQTT broker refuses the login.
func hint(err error) string {
	if errors.Is(err, packets.ErrorRefusedNotAuthorised) || errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword) {
		return " (check the user name, the password, and that this is the service's listener)"
	}
	return ""
}

// host returns the address in a URL, which may hold a password.
func host(node string) string {
	u, err := url.Parse(node)
	if err != nil {
		return ""
	}
	return u.Host
}

func (l *Link) group(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.ConnectTimeout)
	defer cancel()
	group, err := l.config.Group(ctx)
	if err != nil {
		return "", fmt.Errorf("name of the shared group: %w", err)
	}
	return group, nil
}

func (l *Link) options(node string, lost chan<- error) *mqtt.ClientOptions {
	c := l.config
	o := mqtt.NewClientOptions().
		AddBroker(node).
		// No client can guess it, and so take it [TOP-4].
		SetClientID("motorpool-" + uuid.NewString()).
		SetUsername(c.Username).
		SetPassword(c.Password).
		SetCleanSession(true).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetConnectTimeout(c.ConnectTimeout).
		SetCustomOpenConnectionFn(dial).
		SetWriteTimeout(c.WriteTimeout).
		SetKeepAlive(c.KeepAlive).
		SetPingTimeout(never).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { lost <- err })
	if c.TLS != nil {
		o.SetTLSConfig(c.TLS)
	}
	return o
}

// await waits for a token, no longer than one step of connecting may take.
func (l *Link) await(ctx context.Context, token mqtt.Token) error {
	ctx, cancel := context.WithTimeout(ctx, l.config.ConnectTimeout)
	defer cancel()
	select {
	case <-token.Done():
		return token.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// granted reads the result of a subscription to one filter, which the library does not judge.
func granted(token *mqtt.SubscribeToken) error {
	const failure = 0x80    // MQTT 3.1.1 §3.9.3
	codes := token.Result() // under keys of the library's own making
	for _, code := range codes {
		if code >= failure {
			codes = nil
			break
		}
	}
	if len(codes) == 0 {
		return errors.New("subscribe: the MQTT broker denied it; check the access rules of the service account")
	}
	return nil
}
