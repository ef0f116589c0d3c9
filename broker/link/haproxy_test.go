package link_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// balanced is three Mosquittos behind HAProxy, with units and the service connected.
type balanced struct {
	*testing.T
	shards  [3]*devstack.Mosquitto
	url     string // where units connect
	trusted *tls.Config
	service *link.Shards
}

func startBalanced(t *testing.T, units []telematics.Unit, to link.Receiver) *balanced {
	t.Helper()
	devstack.NeedServer(t, devstack.MosquittoServer)
	devstack.NeedServer(t, devstack.HAProxyServer)
	b := &balanced{T: t}
	dir := t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	b.must(err)
	pair, err := authority.Issue("mqtt")
	b.must(err)
	pem, err := os.ReadFile(authority.CAFile)
	b.must(err)
	b.trusted = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	b.trusted.RootCAs.AppendCertsFromPEM(pem)

	passwords := map[string]string{}
	for _, u := range units {
		passwords[string(u)] = linktest.UnitPassword
	}
	var addresses []string
	var nodes [][]string
	for i := range b.shards {
		b.shards[i], err = devstack.StartMosquitto(devstack.MosquittoConfig{
			Dir: filepath.Join(dir, fmt.Sprint("shard-", i)), Units: passwords, ServicePassword: linktest.ServicePassword,
			CertFile: pair.CertFile, KeyFile: pair.KeyFile,
		})
		b.must(err)
		t.Cleanup(func() { _ = b.shards[i].Close() })
		addresses = append(addresses, strings.TrimPrefix(b.shards[i].UnitsURL(), "ssl://"))
		nodes = append(nodes, []string{b.shards[i].ServiceURL()})
	}
	balancer, err := devstack.StartHAProxy(devstack.HAProxyConfig{
		Dir: filepath.Join(dir, "haproxy"), Public: pair, CAFile: authority.CAFile, Shards: addresses,
	})
	b.must(err)
	t.Cleanup(func() { _ = balancer.Close() })
	b.url = balancer.URL()
	b.service = startShards(t, to, nodes...)
	for _, l := range b.service.Links() {
		awaitReady(t, l)
	}
	return b
}

func (b *balanced) must(err error) {
	b.Helper()
	require.NoError(b, err)
}

// balancedUnit is a unit that connects through the load balancer, and reconnects after a lost
// connection.
type balancedUnit struct {
	*balanced
	unit     telematics.Unit
	client   atomic.Pointer[mqtt.Client]
	sessions atomic.Int64
	commands atomic.Int64
}

// connect returns when the unit is subscribed and has published that it is online.
func (u *balancedUnit) connect() error {
	topic := v1.PresenceChannel.Topic(u.unit)
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(u.url).SetTLSConfig(u.trusted).SetClientID(string(u.unit)).
		SetUsername(string(u.unit)).SetPassword(linktest.UnitPassword).SetAutoReconnect(false).SetConnectTimeout(5 * time.Second).
		SetConnectionLostHandler(func(mqtt.Client, error) { go u.stayConnected() }))
	online := presence(telematics.Online, fmt.Sprintf("%s-%d", u.unit, u.sessions.Add(1)))
	for _, step := range []func() mqtt.Token{
		client.Connect,
		func() mqtt.Token {
			return client.Subscribe(v1.CommandChannel.Topic(u.unit), 1, func(mqtt.Client, mqtt.Message) { u.commands.Add(1) })
		},
		func() mqtt.Token { return client.Publish(topic, 1, true, online) },
	} {
		token := step()
		if !token.WaitTimeout(5 * time.Second) {
			return fmt.Errorf("%s: no acknowledgement", u.unit)
		}
		if err := token.Error(); err != nil {
			return err
		}
	}
	u.client.Store(&client)
	return nil
}

func (u *balancedUnit) stayConnected() {
	for u.Context().Err() == nil && u.connect() != nil {
		time.Sleep(100 * time.Millisecond)
	}
}

func TestHAProxy_RoutesEachUnitToOneShardAndToAnotherWhileThatIsDown(t *testing.T) {
	t.Parallel()
	const fleet = 24
	units := make([]*balancedUnit, fleet)
	serials := make([]telematics.Unit, fleet)
	for i := range units {
		serials[i] = telematics.Unit(fmt.Sprintf("35824005111%04d", i))
	}
	var to receiver
	b := startBalanced(t, serials, &to)
	for i, serial := range serials {
		units[i] = &balancedUnit{balanced: b, unit: serial}
		b.must(units[i].connect())
	}
	t.Cleanup(func() {
		for _, u := range units {
			(*u.client.Load()).Disconnect(0)
		}
	})
	brokertest.Eventually(t, 10*time.Second, "the service has all units' presence", func() bool { return to.presence.Load() == fleet })
	var want int64
	commandAll := func() {
		t.Helper()
		want++
		for _, u := range units {
			b.must(
				b.service.Publish(
					telematics.Transmission{Unit: u.unit, Topic: v1.CommandChannel.Topic(u.unit), Payload: []byte("lock"), QoS: 1},
				),
			)
		}
		for _, u := range units {
			brokertest.Eventually(t, 10*time.Second, "the command of "+string(u.unit), func() bool { return u.commands.Load() == want })
		}
	}
	moved := func() (n int) {
		for _, u := range units {
			if u.sessions.Load() > 1 {
				n++
			}
		}
		return n
	}
	commandAll()

	b.must(b.shards[0].Kill())
	// Each unit of the shard reconnects at least once, and publishes its presence.
	brokertest.Eventually(t, 20*time.Second, "the units of the killed shard connect to others", func() bool {
		for _, u := range units {
			if !(*u.client.Load()).IsConnectionOpen() {
				return false
			}
		}
		return moved() > 0 && to.presence.Load() >= int64(fleet+moved())
	})
	if n := moved(); n == fleet {
		t.Errorf("all %d units have moved, want those of other shards to stay", n)
	} else {
		t.Logf("%d of %d units have moved", n, fleet)
	}
	commandAll()

	// The other two shards have units, too.
	b.must(b.shards[0].Restart())
	awaitReady(t, b.service.Links()[0])
	before := moved()
	b.must(b.shards[1].Kill())
	brokertest.Eventually(t, 20*time.Second, "the units of the second shard move", func() bool { return moved() > before })
}

func TestHAProxy_ForwardsOnlyAConnectWithAUserName(t *testing.T) {
	t.Parallel()
	var to receiver
	b := startBalanced(t, []telematics.Unit{unit}, &to)
	var clients sync.WaitGroup
	for name, packet := range map[string]string{
		"no MQTT":      "GET / HTTP/1.1\r\nHost: mqtt\r\n\r\n",
		"no user name": "\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04unit",
		"no CONNECT":   "\xc0\x00",
	} {
		clients.Go(func() {
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", strings.TrimPrefix(b.url, "ssl://"), b.trusted)
			if err != nil {
				t.Errorf("%s: connect: %v", name, err)
				return
			}
			defer conn.Close()
			_, err = conn.Write([]byte(packet))
			if err = errors.Join(err, conn.SetReadDeadline(time.Now().Add(15*time.Second))); err != nil {
				t.Errorf("%s: write: %v", name, err)
			}
			if answer, err := io.ReadAll(conn); len(answer) > 0 || os.IsTimeout(err) {
				t.Errorf("%s: answered %q, %v; want a closed connection", name, answer, err)
			}
		})
	}
	clients.Wait()
}
