package simulator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

func TestUnit_ExecutesTheSecondCopyAfterItGotTheKey(t *testing.T) {
	b := newBench(t)
	ring, err := signing.ParseKeyring(golden(t, "keyring.jwks"))
	require.NoError(t, err)
	lock := golden(t, filepath.Join("wire", "command-lock.jws"))
	b.keys, b.now = signing.Keyring{}, epoch.Add(time.Second)
	saysOnce(t, b.deliver(lock), telematics.Rejected, telematics.BadSignature, "")
	b.keys = ring
	saysOnce(t, b.deliver(lock), telematics.Received, "", "")
	saysOnce(t, b.pass(2*time.Second), telematics.Succeeded, "", "")
}

func golden(t *testing.T, file string) []byte {
	t.Helper()
	message, err := os.ReadFile(filepath.Join("..", "telematics", "testdata", file))
	require.NoError(t, err)
	return message
}

// [ACK-5]
func TestUnit_EveryAnswerHasTheTraceOfTheCommand(t *testing.T) {
	b := newBench(t)
	ring, err := signing.ParseKeyring(golden(t, "keyring.jwks"))
	require.NoError(t, err)
	b.keys, b.now = ring, epoch.Add(time.Second)
	traced := golden(t, filepath.Join("wire", "command-attention.jws"))
	claims, err := ring.Verify(traced)
	if err != nil || claims.Trace == "" {
		t.Fatalf("the golden command has the trace %q (%v), want one", claims.Trace, err)
	}
	said := b.deliver(traced)
	said = append(said, b.pass(2*time.Second)...)
	said = append(said, b.deliver(traced)...)
	if len(said) != 3 {
		t.Fatalf("answers %+v, want 3", said)
	}
	for _, a := range said {
		assert.Equal(t, a.Trace, claims.Trace, "the answer %s has the trace", a.State)
	}
	for _, a := range b.deliver(golden(t, filepath.Join("wire", "command-lock.jws"))) {
		assert.Equal(t, a.Trace, "", "the answer to a command without a trace has the trace")
	}
}
