package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// wire is a connection that records what is written, and reads from a given reader.
type wire struct {
	net.Conn
	from  io.Reader
	reads int
	err   error // of Write

	mu     sync.Mutex
	wrote  [][]byte
	closed bool
}

func (w *wire) Read(p []byte) (int, error) {
	w.reads++
	return w.from.Read(p)
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = append(w.wrote, bytes.Clone(p))
	return len(p), w.err
}

func (w *wire) SetWriteDeadline(time.Time) error { return nil }

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return nil
}

func (w *wire) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

func (w *wire) written() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrote)
}

func ackOf(id uint16) []byte {
	var b bytes.Buffer
	ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	ack.MessageID = id
	_ = ack.Write(&b)
	return b.Bytes()
}

func messageOf(id uint16) []byte {
	var b bytes.Buffer
	publish := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
	publish.TopicName, publish.Qos, publish.Payload, publish.MessageID = "a", 1, bytes.Repeat([]byte{'x'}, 600), id
	_ = publish.Write(&b)
	return b.Bytes()
}

func TestBatchingConn_ReadsPacketsTogether(t *testing.T) {
	var sent bytes.Buffer
	for id := range uint16(10) {
		sent.Write(messageOf(id + 1))
	}
	w := &wire{from: &sent}
	conn := batching(w, time.Second, time.Minute)
	for id := range uint16(10) {
		packet, err := packets.ReadPacket(conn)
		if err != nil || packet.Details().MessageID != id+1 {
			t.Fatalf("packet %d: %v %v", id+1, packet, err)
		}
	}
	assert.Equal(t, w.reads, 1, "reads for packets that arrived together")
}

func TestBatchingConn_ReadsNothingAfterClose(t *testing.T) {
	conn := batching(&wire{from: bytes.NewReader(append(messageOf(1), messageOf(2)...))}, time.Second, time.Minute)
	_, err := packets.ReadPacket(conn)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	if packet, err := packets.ReadPacket(conn); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read %v, %v; want net.ErrClosed", packet, err)
	}
}

func TestBatchingConn_WritesAcknowledgementsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		conn := batching(w, time.Second, time.Minute)
		write := func(p []byte) {
			if n, err := conn.Write(p); n != len(p) || err != nil {
				t.Errorf("Write: %d of %d, %v", n, len(p), err)
			}
		}
		message := messageOf(9)
		var many []byte
		for id := range uint16(acksTogether) {
			many = append(many, ackOf(id+1)...)
		}

		write(message) // written immediately
		write(ackOf(1))
		write(ackOf(2))
		write(message) // written after the waiting acknowledgements, in the same write
		for id := range uint16(acksTogether) {
			write(ackOf(id + 1))
		}
		time.Sleep(10 * ackAfter) // no acknowledgement is waiting any more
		write(ackOf(3))
		write(ackOf(4))
		assert.Equal(t, len(w.written()), 3, "writes before the last acknowledgements are due")
		time.Sleep(2 * ackAfter)
		write(ackOf(5))
		time.Sleep(2 * ackAfter)
		want := [][]byte{message, slices.Concat(ackOf(1), ackOf(2), message), many, slices.Concat(ackOf(3), ackOf(4)), ackOf(5)}
		if got := w.written(); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("wrote %q, want %q", got, want)
		}
	})
}

func TestBatchingConn_ClosesAfterAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{err: errors.New("broken"), from: bytes.NewReader(nil)}
		conn := batching(w, time.Second, time.Minute)
		if _, err := conn.Write(ackOf(1)); err != nil {
			t.Errorf("the first acknowledgement, which is only queued: %v", err)
		}
		time.Sleep(2 * ackAfter)
		if !w.isClosed() {
			t.Error("the connection is open after a write failed")
		}
		for _, packet := range [][]byte{messageOf(1), ackOf(2)} {
			if _, err := conn.Write(packet); !errors.Is(err, w.err) {
				t.Errorf("another packet: %v, want the error of the write", err)
			}
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, w.err) {
			t.Errorf("Read returned %v, want the error of the write", err)
		}
	})
}

// scripted is a socket whose reads and writes fail with given errors, one after the other.
type scripted struct {
	wire
	readErrs  []error
	writeErrs []error
	slow      time.Duration // how long after its deadline a write ends
	deadline  time.Time
}

func (s *scripted) SetDeadline(time.Time) error     { return nil }
func (s *scripted) SetReadDeadline(time.Time) error { return nil }
func (s *scripted) SetWriteDeadline(by time.Time) error {
	s.deadline = by
	return nil
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.readErrs) > 0 {
		err := s.readErrs[0]
		s.readErrs = s.readErrs[1:]
		return 0, err
	}
	return s.wire.Read(p)
}

func (s *scripted) Write(p []byte) (int, error) {
	if len(s.writeErrs) == 0 {
		return s.wire.Write(p)
	}
	time.Sleep(time.Until(s.deadline) + s.slow)
	err := s.writeErrs[0]
	s.writeErrs = s.writeErrs[1:]
	return 0, err
}

func TestBatchingConn_ToleratesOneDeadlineMissedByALateProcess(t *testing.T) {
	expired := os.ErrDeadlineExceeded
	for name, c := range map[string]struct {
		readErrs []error
		pings    int
		lost     bool
	}{
		"a message":                                     {nil, 0, false},
		"no message until the ping is answered":         {[]error{expired}, 1, false},
		"a message at the last read after the deadline": {[]error{expired, expired}, 1, false},
		"no message at the last read":                   {[]error{expired, expired, expired}, 1, true},
		"a closed connection":                           {[]error{io.EOF}, 0, true},
	} {
		t.Run("read: "+name, func(t *testing.T) {
			w := &scripted{wire: wire{from: bytes.NewReader(messageOf(1))}, readErrs: c.readErrs}
			conn := batching(w, time.Second, time.Second)
			_ = conn.SetDeadline(time.Time{}) // as the library does after connecting
			packet, err := packets.ReadPacket(conn)
			if (err != nil) != c.lost {
				t.Errorf("read %v, %v; want the connection lost: %t", packet, err, c.lost)
			}
			assert.Equal(t, len(w.written()), c.pings, "pings")
		})
	}
	for name, c := range map[string]struct {
		writeErrs []error
		slow      time.Duration
		lost      bool
	}{
		"the deadline was missed":       {[]error{expired}, 2 * missedBy, false},
		"the deadline was missed twice": {[]error{expired, expired}, 2 * missedBy, true},
		"the socket is full":            {[]error{expired}, 0, true},
		"the connection is broken":      {[]error{io.ErrClosedPipe}, 2 * missedBy, true},
	} {
		t.Run("write: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &scripted{writeErrs: c.writeErrs, slow: c.slow}
				conn := batching(w, time.Second, time.Second)
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := conn.Write(messageOf(1)); (err != nil) != c.lost {
					t.Errorf("Write: %v; want the connection lost: %t", err, c.lost)
				}
			})
		})
	}
}

func TestBatchingConn_MessagesAndAcknowledgementsStayWhole(t *testing.T) {
	w := &wire{}
	conn := batching(w, time.Second, time.Minute)
	for id := range uint16(2000) {
		packet := ackOf(id)
		if id%7 == 0 {
			packet = messageOf(id)
		}
		_, err := conn.Write(packet)
		require.NoError(t, err)
		if id%100 == 0 {
			time.Sleep(ackAfter)
		}
	}
	time.Sleep(50 * ackAfter)
	read := bytes.NewReader(bytes.Join(w.written(), nil))
	for id := range uint16(2000) {
		packet, err := packets.ReadPacket(read)
		if err != nil || packet.Details().MessageID != id {
			t.Fatalf("packet %d: %v %v", id, packet, err)
		}
	}
}

// piped is a pipe that returns the errors of a socket when it is closed.
type piped struct{ net.Conn }

func (p piped) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	return n, ended(err)
}

func (p piped) Write(b []byte) (int, error) {
	n, err := p.Conn.Write(b)
	return n, ended(err)
}

func ended(err error) error {
	if errors.Is(err, io.ErrClosedPipe) {
		return net.ErrClosed
	}
	return err
}

// For that error the library assumes that it closed the connection itself, and calls no handler.
func TestLink_NoticesAServerThatReadsNoAcknowledgements(t *testing.T) {
	for name, publishes := range map[string]bool{"while a message is written": true, "while nothing is written": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			t.Cleanup(func() { _ = far.Close() })
			go func() { // accepts the connection, sends a message, and reads nothing more
				_, _ = packets.ReadPacket(far)
				_ = packets.NewControlPacket(packets.Connack).Write(far)
				_, _ = far.Write(messageOf(1))
			}()
			lost := make(chan error, 1)
			heard := make(chan struct{})
			link := New(Config{Nodes: []string{"tcp://x:1"}, KeepAlive: time.Minute})
			o := link.options("tcp://x:1", "motorpool-", lost).
				SetDefaultPublishHandler(func(mqtt.Client, mqtt.Message) { close(heard) }).
				SetCustomOpenConnectionFn(func(_ *url.URL, o mqtt.ClientOptions) (net.Conn, error) {
					return batching(piped{near}, o.WriteTimeout, time.Minute), nil
				})
			client := mqtt.NewClient(o)
			require.NoError(t, link.await(t.Context(), client.Connect()))
			<-heard
			if publishes {
				time.Sleep(10 * ackAfter)
				client.Publish("a", 1, false, "b")
			}
			select {
			case err := <-lost:
				t.Log(err)
			case <-time.After(time.Minute):
				t.Error("the lost connection was not reported")
			}
		})
	}
}
