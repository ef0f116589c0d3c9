package broker

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// countedConn counts the system calls that reading would take.
type countedConn struct {
	net.Conn
	from  io.Reader
	reads int
}

func (c *countedConn) Read(p []byte) (int, error) {
	c.reads++
	return c.from.Read(p)
}

func TestPacketsThatCameTogetherAreReadTogether(t *testing.T) {
	var sent bytes.Buffer
	publish := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	publish.TopicName, publish.Qos, publish.Payload = "a", 1, bytes.Repeat([]byte{'x'}, 600)
	for id := range uint16(10) {
		publish.MessageID = id + 1
		if err := publish.Write(&sent); err != nil {
			t.Fatal(err)
		}
	}
	counted := &countedConn{from: &sent}
	conn := buffered(counted)
	for id := range uint16(10) {
		packet, err := packets.ReadPacket(conn)
		if err != nil || packet.Details().MessageID != id+1 {
			t.Fatalf("packet %d: %v %v", id+1, packet, err)
		}
	}
	if counted.reads != 1 {
		t.Errorf("%d reads for what came together", counted.reads)
	}
}

func TestAConnectionIsSecuredWhereTheAddressSaysSo(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for _, c := range []struct {
		scheme string
		tls    *tls.Config
		ok     bool
	}{
		{"ssl", &tls.Config{RootCAs: trusted}, true},
		{"ssl", &tls.Config{RootCAs: x509.NewCertPool()}, false},
		{"ssl", &tls.Config{RootCAs: trusted, ServerName: "elsewhere"}, false},
		{"ssl", nil, false}, // the system does not know it
		{"tcp", nil, true},
		{"ws", nil, false},
	} {
		o := mqtt.ClientOptions{ConnectTimeout: 5 * time.Second, TLSConfig: c.tls}
		conn, err := dial(&url.URL{Scheme: c.scheme, Host: server.Listener.Addr().String()}, o)
		if (err == nil) != c.ok {
			t.Errorf("%s with %+v: %v", c.scheme, c.tls, err)
		}
		if err != nil {
			continue
		}
		if _, secured := conn.(bufferedConn).Conn.(*tls.Conn); secured != (c.scheme == "ssl") {
			t.Errorf("%s: secured %v", c.scheme, secured)
		}
		_ = conn.Close()
	}
}

func TestAServerThatNeverGreetsIsNotWaitedForLongerThanForConnecting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := dial(&url.URL{Scheme: "ssl", Host: silent.Addr().String()}, mqtt.ClientOptions{ConnectTimeout: 50 * time.Millisecond})
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it is secured")
		}
	case <-time.After(10 * time.Second):
		t.Error("it is still waited for")
	}
}
