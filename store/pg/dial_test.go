package pg

import (
	"io"
	"net"
	"testing"
)

func TestNewConn_ReadsWhatPostgresRepliesInAnyPieces(t *testing.T) {
	for reply, want := range map[string]bool{
		"R\x00\x00\x00\x08\x00\x00\x00\x00Sx":        true,
		"S\x16\x03\x03\x00\x7a\x02":                  true, // TLS
		"NR\x00\x00\x00\x08\x00\x00\x00\x00":         true, // none
		"\x16\x03\x03\x00\x7a\x02":                   true, // TLS from the beginning
		"Ecould not fork new process: no memory\x00": true,
		"HTTP/1.1 400 Bad Request\r\n\r\n":           false,
		"SSH-2.0-OpenSSH_9.2\r\n":                    false,
		"-ERR unknown command\r\n":                   false,
		"\x15\x03\x03\x00\x02\x02\x28":               false, // an alert of TLS
	} {
		for _, piece := range []int{1, 2, 100} {
			server, client := net.Pipe()
			go func() {
				for rest := []byte(reply); len(rest) > 0; rest = rest[min(piece, len(rest)):] {
					if _, err := server.Write(rest[:min(piece, len(rest))]); err != nil {
						break
					}
				}
				_ = server.Close()
			}()
			conn, read := &newConn{Conn: client}, make([]byte, 1)
			_, err := io.ReadFull(conn, read) // as the driver reads whether the server speaks TLS
			if err == nil {
				var rest []byte
				rest, err = io.ReadAll(conn)
				read = append(read, rest...)
			}
			_ = client.Close()
			if (err == nil) != want || want && string(read) != reply {
				t.Errorf("%q in pieces of %d bytes: read %q, %v", reply, piece, read, err)
			}
		}
	}
}
