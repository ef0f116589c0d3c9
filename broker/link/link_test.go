package link_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"go.uber.org/goleak"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	"motorpool/telematics/teltonika"
	v1 "motorpool/telematics/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const unit = telematics.Unit("358240051111110")

// embeddedMQTT starts the embedded broker. A test may give other access rules for the service.
func embeddedMQTT(t *testing.T, serviceAccess string) *devstack.MQTT {
	t.Helper()
	server, err := devstack.StartMQTT(devstack.MQTTConfig{
		ServiceAccess: serviceAccess, ServicePassword: linktest.ServicePassword,
		UnitPassword: func(user string) (string, bool) { return linktest.UnitPassword, user == string(unit) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

func realMosquitto(t *testing.T) *devstack.Mosquitto {
	t.Helper()
	devstack.NeedServer(t, devstack.MosquittoServer)
	server, err := devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: t.TempDir(), Units: map[string]string{string(unit): linktest.UnitPassword}, ServicePassword: linktest.ServicePassword,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// receiver counts the messages of a link.
type receiver struct {
	answers, reports, presence, retained atomic.Int64
	slow                                 time.Duration // how long a report takes
}

func (e *receiver) Answer(telematics.Message) { e.answers.Add(1) }
func (e *receiver) Report(telematics.Message) { time.Sleep(e.slow); e.reports.Add(1) }
func (e *receiver) Presence(m telematics.Message) bool {
	e.presence.Add(1)
	if m.Retained {
		e.retained.Add(1)
	}
	return true
}

// command is a message to the unit, as a dialect encodes it.
func command(payload []byte) telematics.Transmission {
	return telematics.Transmission{Topic: v1.CommandChannel.Topic(unit), Payload: payload, QoS: 1}
}

// only returns the units on record.
func only(units ...telematics.Unit) func(context.Context, telematics.Unit, int) ([]telematics.Unit, error) {
	return func(_ context.Context, after telematics.Unit, limit int) ([]telematics.Unit, error) {
		rest := units[slices.Index(units, after)+1:]
		return rest[:min(len(rest), limit)], nil
	}
}

// startLink runs a link until the test ends.
func startLink(t *testing.T, url string, to link.Receiver) *link.Link {
	t.Helper()
	return startLinkWith(t, url, to, func(*link.Config) {})
}

func startLinkWith(t *testing.T, url string, to link.Receiver, change func(*link.Config)) *link.Link {
	t.Helper()
	l, _ := startStoppable(t, url, to, change)
	return l
}

// startStoppable runs a link until the test ends, or until stop is called.
func startStoppable(t *testing.T, url string, to link.Receiver, change func(*link.Config)) (l *link.Link, stop func()) {
	t.Helper()
	config := link.Config{
		Nodes: []string{url}, Username: mosquitto.ServiceUser, Password: linktest.ServicePassword,
		Group:          func(context.Context) (string, error) { return "motorpool-0123456789abcdef", nil },
		Units:          only(unit),
		ConnectTimeout: 2 * time.Second, KeepAlive: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	change(&config)
	l = link.New(config)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(t, l.Run(ctx, to), "Run")
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return l, stop
}

// unitClient is a unit that counts the commands that it gets.
func unitClient(t *testing.T, url string, commands *atomic.Int64) mqtt.Client {
	t.Helper()
	client := linktest.Connect(t, url, unit)
	linktest.Await(t, "subscribe", client.Subscribe(v1.CommandChannel.Topic(unit), 1, func(mqtt.Client, mqtt.Message) { commands.Add(1) }))
	return client
}

func awaitReady(t *testing.T, link *link.Link) {
	t.Helper()
	brokertest.Eventually(t, 10*time.Second, "ready", func() bool { return link.AllReady() == nil })
}

// kept are the messages that a link has delivered.
type kept struct {
	mu       sync.Mutex
	messages []string
}

func (k *kept) Answer(m telematics.Message)        { k.add("answer", m) }
func (k *kept) Report(m telematics.Message)        { k.add("report", m) }
func (k *kept) Presence(m telematics.Message) bool { k.add("presence", m); return true }

func (k *kept) add(kind string, m telematics.Message) {
	k.mu.Lock()
	defer k.mu.Unlock()
	said := fmt.Sprintf("%s %s of %s: %s %s, retained: %t", m.Dialect.Protocol(), kind, m.Unit, m.Subject, m.Payload, m.Retained)
	k.messages = append(k.messages, said)
}

func (k *kept) sorted() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(slices.Values(k.messages))
}

func TestLink_DialectsShareItAndEachGetsItsMessages(t *testing.T) {
	t.Parallel()
	server := embeddedMQTT(t, "")
	car := linktest.Connect(t, server.UnitsURL(), unit)
	own := "ovms/" + string(unit) + "/" + string(unit) + "/"
	// Before the service subscribes.
	linktest.Publish(t, car, own+"metric/s/v3/connected", true, "yes")
	var to kept
	awaitReady(t, startLink(t, server.ServiceURL(), &to))
	linktest.Publish(t, car, own+"metric/v/b/soc", true, "81") // live
	linktest.Publish(t, car, own+"client/motorpool/response/7", false, "done")
	linktest.Publish(t, car, v1.TelemetryChannel.Topic(unit), false, "{}")
	var want []string
	for _, said := range []string{
		"ovms answer of %s: client/motorpool/response/7 done, retained: false",
		"ovms presence of %s: metric/s/v3/connected yes, retained: true",
		"ovms report of %s: metric/v/b/soc 81, retained: false",
		"v1 report of %s:  {}, retained: false",
	} {
		want = append(want, fmt.Sprintf(said, unit))
	}
	brokertest.Eventually(t, 5*time.Second, "four messages", func() bool { return len(to.sorted()) >= len(want) })
	assert.EqualSlices(t, to.sorted(), want, "delivered")
}

// In a dialect whose answers and reports share a topic, each message is delivered as both, once.
func TestLink_MessageOfASharedTopicIsDeliveredAsAnswerAndReport(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var one, two receiver
	awaitReady(t, startLink(t, server.ServiceURL(), &one))
	awaitReady(t, startLink(t, server.ServiceURL(), &two))
	car := linktest.Connect(t, server.UnitsURL(), unit)
	const n = 20
	for range n {
		linktest.Publish(t, car, teltonika.DataTopic(unit), false, "either")
	}
	brokertest.Eventually(t, 5*time.Second, "all answers and reports", func() bool {
		return one.answers.Load()+two.answers.Load() >= n && one.reports.Load()+two.reports.Load() >= n
	})
	linktest.Publish(t, car, v1.AckChannel.Topic(unit), false, "done")
	brokertest.Eventually(t, 5*time.Second, "a later answer", func() bool { return one.answers.Load()+two.answers.Load() > n })
	if answers, reports := one.answers.Load()+two.answers.Load(), one.reports.Load()+two.reports.Load(); answers != n+1 ||
		reports != n {
		t.Errorf("%d answers and %d reports, want %d and %d", answers, reports, n+1, n)
	}
}

func TestLink_InstancesShareAnswersAndEachGetsPresence(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var one, two receiver
	var commands atomic.Int64
	awaitReady(t, startLink(t, server.ServiceURL(), &one))
	link := startLink(t, server.ServiceURL(), &two)
	awaitReady(t, link)
	car := unitClient(t, server.UnitsURL(), &commands)
	require.NoError(t, link.Publish(command([]byte("lock"))))
	const n = 100
	for range n {
		linktest.Publish(t, car, v1.AckChannel.Topic(unit), false, "done")
		linktest.Publish(t, car, v1.TelemetryChannel.Topic(unit), false, "here")
	}
	linktest.Publish(t, car, v1.PresenceChannel.Topic(unit), true, "online")
	brokertest.Eventually(t, 5*time.Second, "all messages received", func() bool {
		return one.answers.Load()+two.answers.Load() == n && one.reports.Load()+two.reports.Load() == n &&
			one.presence.Load() == 1 && two.presence.Load() == 1 && commands.Load() == 1
	})
	if one.answers.Load() == 0 || two.answers.Load() == 0 {
		t.Errorf("the instances got %d and %d answers, want some at each", one.answers.Load(), two.answers.Load())
	}
}

// The library returns no error for a subscription that the MQTT broker denied.
func TestLink_DeniedSubscriptionIsNotReady(t *testing.T) {
	t.Parallel()
	server := embeddedMQTT(t, strings.ReplaceAll(mosquitto.ServiceACL, "topic read motorpool/v1/+/ack", ""))
	var to receiver
	link := startLink(t, server.ServiceURL(), &to)
	brokertest.Eventually(t, 10*time.Second, "telemetry and presence up", func() bool {
		err := link.AllReady()
		return err != nil && strings.Contains(err.Error(), "answers") && !strings.Contains(err.Error(), "telemetry") &&
			!strings.Contains(err.Error(), "presence")
	})
	for range 20 {
		if link.Ready() == nil {
			t.Fatal("ready without the right to read answers")
		}
		if err := link.Publish(command([]byte("lock"))); err == nil {
			t.Fatal("published a command though no answer could be received")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// With the library's own reconnection a command would be stored and delivered after the outage.
func TestLink_CommandDuringAnOutageIsNotDeliveredAfterwards(t *testing.T) {
	t.Parallel()
	server := realMosquitto(t)
	var to receiver
	link := startLink(t, server.ServiceURL(), &to)
	awaitReady(t, link)
	require.NoError(t, server.Kill())
	brokertest.Eventually(t, 10*time.Second, "the outage is noticed", func() bool { return link.Ready() != nil })
	for range 10 {
		if err := link.Publish(command([]byte("late"))); err == nil {
			t.Fatal("a command was accepted during the outage")
		}
	}
	require.NoError(t, server.Restart())
	var commands atomic.Int64
	unitClient(t, server.UnitsURL(), &commands)
	awaitReady(t, link)
	// A stored message would be sent on the same connection, before or between these two.
	for n := range int64(2) {
		require.NoError(t, link.Publish(command([]byte("now"))))
		brokertest.Eventually(t, 5*time.Second, "a command after the outage", func() bool { return commands.Load() > n })
	}
	if n := commands.Load(); n != 2 {
		t.Errorf("%d commands were delivered, want the two after the outage", n)
	}
}

// A write to a full socket would block, and the message be delivered seconds late.
func TestLink_DropsAConnectionThatIsNotRead(t *testing.T) {
	server := embeddedMQTT(t, "")
	cut := newRelay(t, server.ServiceURL(), nil)
	var to receiver
	link := startLink(t, cut.url(), &to)
	awaitReady(t, link)
	cut.stop()
	big := make([]byte, 60<<10)
	taken := 0
	brokertest.Eventually(t, 30*time.Second, "the stuck connection is dropped", func() bool {
		start := time.Now()
		err := link.Publish(command(big))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("a publication blocked for %v, want at most about the write timeout", took)
		}
		if err == nil {
			taken++
		}
		return err != nil && link.Ready() != nil
	})
	t.Logf("%d messages of 60 KiB were accepted before", taken)
	cut.resume()
	awaitReady(t, link)
}

func TestLink_NoticesASilentBroker(t *testing.T) {
	t.Parallel()
	cut := newRelay(t, embeddedMQTT(t, "").ServiceURL(), nil)
	var to receiver
	link := startLink(t, cut.url(), &to)
	awaitReady(t, link)
	cut.stop()
	brokertest.Eventually(t, 30*time.Second, "the silence is noticed", func() bool { return link.Ready() != nil })
	cut.resume()
	awaitReady(t, link)
}

// On one shared connection, a flood of reports delayed every answer.
func TestLink_AFloodOfReportsDelaysNoAnswer(t *testing.T) {
	server := realMosquitto(t)
	to := receiver{slow: 10 * time.Millisecond}
	awaitReady(t, startLink(t, server.ServiceURL(), &to))
	car := linktest.Connect(t, server.UnitsURL(), unit)
	for i := range 2000 { // 20 s of work for the receiver
		car.Publish(v1.TelemetryChannel.Topic(unit), 1, false, fmt.Sprintf("report %d", i))
	}
	start := time.Now()
	for range 50 {
		linktest.Publish(t, car, v1.AckChannel.Topic(unit), false, "done")
	}
	brokertest.Eventually(t, 10*time.Second, "all answers received", func() bool { return to.answers.Load() == 50 })
	if to.reports.Load() >= 2000 {
		t.Errorf("all reports were handled within %v: the flood was too small for this test", time.Since(start))
	}
}

// relay forwards connections to a server, and can stop reading from them.
type relay struct {
	listener net.Listener
	target   string
	back     func(to io.Writer, from io.Reader) // forwards what the server sends
	mu       sync.Mutex
	open     chan struct{} // closed while it forwards
	conns    []net.Conn
	copies   sync.WaitGroup
}

// newRelay starts one that forwards what the server sends by a function; nil: everything.
func newRelay(t *testing.T, url string, back func(to io.Writer, from io.Reader)) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{listener: listener, target: strings.TrimPrefix(url, "tcp://"), back: back, open: make(chan struct{})}
	if back == nil {
		r.back = r.forward
	}
	close(r.open)
	r.copies.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.resume()
		r.mu.Lock()
		for _, conn := range r.conns {
			_ = conn.Close()
		}
		r.mu.Unlock()
		r.copies.Wait()
	})
	return r
}

func (r *relay) url() string { return "tcp://" + r.listener.Addr().String() }

func (r *relay) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = make(chan struct{})
}

func (r *relay) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.open:
	default:
		close(r.open)
	}
}

func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, near, far)
		r.mu.Unlock()
		end := func() { _ = errors.Join(near.Close(), far.Close()) }
		r.copies.Go(func() { defer end(); r.forward(far, near) })
		r.copies.Go(func() { defer end(); r.back(near, far) })
	}
}

func (r *relay) forward(to io.Writer, from io.Reader) {
	buffer := make([]byte, 4096)
	for {
		r.mu.Lock()
		open := r.open
		r.mu.Unlock()
		<-open
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
