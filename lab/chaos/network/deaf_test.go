package network

import (
	"bytes"
	"testing"
)

func TestPackets_DeafClientGetsAllButPublishes(t *testing.T) {
	connAck, pingResp := []byte{0x20, 2, 0, 0}, []byte{0xd0, 0}
	short := append([]byte{0x32, 5}, "a/b.."...)
	long := append([]byte{0x30, 0xac, 0x02}, bytes.Repeat([]byte("x"), 300)...) // 300, in two bytes
	stream := bytes.Join([][]byte{connAck, short, pingResp, long, pingResp}, nil)
	for size := 1; size <= len(stream); size++ { // however the stream is divided
		for deaf, want := range map[bool][]byte{false: stream, true: bytes.Join([][]byte{connAck, pingResp, pingResp}, nil)} {
			var p packets
			var got []byte
			for at := 0; at < len(stream); at += size {
				got = append(got, p.without(stream[at:min(at+size, len(stream))], deaf)...)
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("in parts of %d bytes, deaf %t: %d bytes arrive, want %d", size, deaf, len(got), len(want))
			}
		}
	}
	connect := []byte{0x10, 2, 0, 0}
	var p packets
	if got := p.without(append(connect, short...), true); len(got) != len(connect)+len(short) {
		t.Error("what the client publishes does not reach the server")
	}
}

func TestPackets_PublishThatHasBegunArrivesWhole(t *testing.T) {
	var p packets
	message := []byte{0x20, 2, 0, 0, 0x30, 4, 'a', 'b', 'c', 'd'}
	got := append(p.without(message[:7], false), p.without(message[7:], true)...)
	if !bytes.Equal(got, message) {
		t.Errorf("%q arrives of %q", got, message)
	}
}
