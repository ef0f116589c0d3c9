package load

import (
	"net"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// acceptUnits is an MQTT broker that accepts everything, and sends each connection to a channel
// when its unit is ready.
func acceptUnits(t *testing.T, ready chan<- net.Conn) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	grant := func(conn net.Conn) {
		for {
			packet, err := packets.ReadPacket(conn)
			if err != nil {
				return
			}
			switch p := packet.(type) {
			case *packets.ConnectPacket:
				_ = packets.NewControlPacket(packets.Connack).Write(conn)
			case *packets.SubscribePacket:
				granted := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
				granted.MessageID, granted.ReturnCodes = p.MessageID, []byte{1}
				_ = granted.Write(conn)
			case *packets.PublishPacket: // the presence
				taken := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
				taken.MessageID = p.MessageID
				_ = taken.Write(conn)
				ready <- conn
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go grant(conn)
		}
	}()
	return "tcp://" + listener.Addr().String()
}

func TestConnectedUnits_LostConnectionsAreCounted(t *testing.T) {
	ready := make(chan net.Conn, 3)
	c := &ConnectedUnits{URL: acceptUnits(t, ready), Vehicles: Spread(3, 3), Every: 1}
	if err := c.connectAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if counts := c.counts(); counts.Connected != 3 || counts.Lost != 0 {
		t.Fatalf("counts %+v, want 3 connected", counts)
	}
	_ = (<-ready).Close()
	for end := time.Now().Add(10 * time.Second); c.counts().Lost != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the lost connection was not counted: %+v", c.counts())
		}
	}
	for range 2 {
		_ = (<-ready).Close()
	}
	c.running.Wait()
}
