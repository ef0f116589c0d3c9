package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/google/uuid"

	"motorpool/guard"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// connection is a connection to an MQTT broker, renewed whenever it is lost, with its
// subscriptions, one for each dialect.
type connection struct {
	name    string // in the log
	filters func(telematics.Filters) []string
	own     bool // its group has no other member: each instance receives all messages
	qos     byte
	to      func(Receiver) func(telematics.Message) bool
	client  atomic.Pointer[mqtt.Client] // nil: nothing may be published
	// Why the latest connection ended, or was not established; nil: there was none.
	why atomic.Pointer[error]
	// When the latest established connection ended, by the monotonic clock; nil: none has.
	lost  atomic.Pointer[time.Time]
	nodes []string // tried in turn, one for each connection
}

// nonEmpty returns a list of the filter, empty for an empty filter.
func nonEmpty(filter string) []string {
	if filter == "" {
		return nil
	}
	return []string{filter}
}

func always(take func(telematics.Message)) func(telematics.Message) bool {
	return func(m telematics.Message) bool { take(m); return true }
}

// anyOf returns why none of the connections or links is ready; nil: one is.
func anyOf[T any](some []T, ready func(T) error) error {
	var missing []error
	for _, one := range some {
		err := ready(one)
		if err == nil {
			return nil
		}
		missing = append(missing, err)
	}
	return errors.Join(missing...)
}

func (ln *connection) ready() error {
	if ln.client.Load() != nil {
		return nil
	}
	return ln.down()
}

// down returns why the connection is not up.
func (ln *connection) down() error {
	if why := ln.why.Load(); why != nil {
		return fmt.Errorf("%w (%s): %w", errNotConnected, ln.name, *why)
	}
	return fmt.Errorf("%w (%s)", errNotConnected, ln.name)
}

// maintain connects, and connects again with backoff, until the context ends.
func (l *Link) maintain(ctx context.Context, ln *connection, take func(telematics.Message) bool) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstReconnect),
		backoff.WithMaxInterval(longestReconnect),
		backoff.WithMaxElapsedTime(0), // never give up
	)
	var outage guard.Outage
	for attempt := 0; ; attempt++ {
		node := ln.nodes[attempt%len(ln.nodes)]
		note := func(err error) {
			outage.Note(ctx, l.config.Logger.With("connection", ln.name, "node", host(node)), "mqtt connection failed", err)
		}
		err := l.runConnection(ctx, ln, node, take, func() { wait.Reset(); note(nil) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ln.why.Store(&err)
		note(err)
		if !guard.Pause(ctx, wait.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// runConnection connects once. It blocks until that connection is lost or the context ends, and
// always returns an error.
func (l *Link) runConnection(ctx context.Context, ln *connection, node string, take func(telematics.Message) bool, up func()) error {
	lost := make(chan error, 1)
	var changed <-chan struct{}
	if !ln.own { // else it is connected before, to learn whether the link is admitted
		var err error
		if changed, err = l.admission(ctx, ln, nil); err != nil {
			return err
		}
	}
	group, installation, err := l.names(ctx)
	if err != nil {
		return err
	}
	heard, probed := func(m telematics.Message) { take(m) }, func(string) {}
	var missed *catchUp
	var asked <-chan struct{} // other connections answer none
	if ln.own {
		asked = l.claims.asked
		group = rand.Text()
		missed = newCatchUp(l, take)
		heard = missed.receive
		probed = func(name string) {
			l.claims.receive(name)
			missed.receiveProbe(name)
		}
	}
	proof := newProof(l)
	client := mqtt.NewClient(
		l.options(node, "motorpool-"+installation, lost).SetDefaultPublishHandler(l.receive(ln, node, heard, probed, proof)),
	)
	defer client.Disconnect(0)
	if err := l.await(ctx, client.Connect()); err != nil {
		return fmt.Errorf("connect: %w%s", err, hint(err))
	}
	for _, dialect := range l.config.Dialects {
		if err := l.subscribe(ctx, client, ln, group, dialect); err != nil {
			return err
		}
	}
	if err := proof.begin(ctx, client, lost); err != nil {
		return err
	}
	l.watchSystem(client, ln)
	if ln.own {
		l.claims.use(client)
		defer l.claims.use(nil)
		if changed, err = l.admission(ctx, ln, lost); err != nil {
			return err
		}
	}
	ln.client.Store(&client)
	defer func() {
		ln.lost.Store(new(time.Now()))
		ln.client.Store(nil)
	}()
	up()
	l.config.Logger.Info("mqtt connected", "connection", ln.name, "node", host(node))
	failed := make(chan error, 1)
	if missed != nil {
		var reading sync.WaitGroup
		ctx, stop := context.WithCancel(ctx)
		reading.Go(func() {
			failed <- l.config.Guard.Try("read retained presence", func() error { return missed.run(ctx, client) })
		})
		defer reading.Wait()
		defer stop()
	}
	again := time.NewTicker(proveEvery)
	defer again.Stop()
	for {
		select {
		case err := <-lost:
			return fmt.Errorf("lost: %w", err)
		case <-changed:
			var closed error
			if changed, closed = l.claims.state(); closed != nil {
				return closed
			}
		case <-asked:
			l.claims.answer()
		case <-again.C:
			if err := proof.again(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			if err != nil {
				return err
			}
		}
	}
}

// receive returns the handler of the connection's messages. A message is in the dialect of its
// topic. There is no handler for each filter: the library would compare each message with all of
// the filters.
func (l *Link) receive(ln *connection, node string, take func(telematics.Message), probed func(string), proof *proof) mqtt.MessageHandler {
	receive := func(m mqtt.Message) {
		proof.received.Add(1)
		dialect, unit, subject, ok := l.config.Dialects.ParseTopic(m.Topic())
		if !ok && l.takeSystem(node, m) {
			return
		}
		if !ok {
			l.config.Logger.Debug("message on an unexpected topic", "connection", ln.name, "topic", m.Topic())
			return
		}
		message := telematics.Message{
			Dialect: dialect, Unit: unit, Subject: subject, Payload: m.Payload(), Retained: m.Retained(),
			Redelivered: m.Duplicate(),
		}
		if name, ok := v1.ProbeName(message); ok {
			probed(name)
		} else {
			take(message)
		}
	}
	return func(_ mqtt.Client, m mqtt.Message) {
		_ = l.config.Guard.Do("receive message", func() { receive(m) })
	}
}

// subscribe subscribes to the connection's topics of one dialect.
func (l *Link) subscribe(ctx context.Context, client mqtt.Client, ln *connection, group string, d telematics.Dialect) error {
	filters, said := map[string]byte{}, d.Filters()
	for _, filter := range ln.filters(said) {
		members := group
		if !ln.own && filter == said.Answers && ln.name != answersName {
			// In one group, each message would be delivered to only one of the two connections.
			members += "-" + ln.name
		}
		filters[telematics.SharedFilter(members, filter)] = ln.qos
	}
	if len(filters) == 0 {
		return nil
	}
	subscribed := client.SubscribeMultiple(filters, nil)
	if err := l.await(ctx, subscribed); err != nil {
		return fmt.Errorf("subscribe to protocol %s: %w", d.Protocol(), err)
	}
	if err := granted(subscribed.(*mqtt.SubscribeToken)); err != nil {
		return fmt.Errorf("subscribe to %s of protocol %s: %w", strings.Join(ln.filters(said), ", "), d.Protocol(), err)
	}
	return nil
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

// names returns the name of the shared group, and the beginning of the installation's id with a
// dash.
func (l *Link) names(ctx context.Context) (group, installation string, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.ConnectTimeout)
	defer cancel()
	if group, err = l.config.Group(ctx); err != nil {
		return "", "", fmt.Errorf("name of the shared group: %w", err)
	}
	if l.config.Installation != nil {
		if installation, err = l.config.Installation(ctx); err != nil {
			return "", "", fmt.Errorf("id of the installation: %w", err)
		}
		installation = installation[:min(len(installation), 8)] + "-"
	}
	return group, installation, nil
}

func (l *Link) options(node, id string, lost chan<- error) *mqtt.ClientOptions {
	c := l.config
	o := mqtt.NewClientOptions().
		AddBroker(node).
		// Random, so no other client can use it and end this connection [TOP-4].
		SetClientID(id + uuid.NewString()).
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

// await waits for a token, for ConnectTimeout at most.
func (l *Link) await(ctx context.Context, token mqtt.Token) error {
	ctx, cancel := context.WithTimeout(ctx, l.config.ConnectTimeout)
	defer cancel()
	return finished(ctx, token)
}

// granted returns an error for a subscription that the MQTT broker denied: the library returns
// none.
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
		return errors.New("the MQTT broker denied it; check the access rules of the service account")
	}
	return nil
}
