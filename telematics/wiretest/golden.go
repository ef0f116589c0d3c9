// Package wiretest reads the golden messages of telematics/testdata/wire, for the tests of the
// packages next to it.
package wiretest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"motorpool/internal/require"
)

var update = flag.Bool("update", false, "write the golden messages anew from what the codec says")

// Path returns the path of a golden message, or of a pattern of them.
func Path(file string) string { return filepath.Join("..", "testdata", "wire", file) }

// Golden returns a golden message. Unless written is nil, it fails the test if written differs, or,
// with -update, replaces the golden message first.
func Golden(t testing.TB, file string, written []byte) []byte {
	t.Helper()
	if *update && written != nil {
		require.NoError(t, os.WriteFile(Path(file), written, 0o644))
	}
	message, err := os.ReadFile(Path(file))
	require.NoError(t, err)
	if written != nil && !bytes.Equal(message, written) {
		t.Errorf("%s: the codec writes\n%s\nwant\n%s", file, written, message)
	}
	return message
}

// Seed adds the golden messages that match a pattern to the seed corpus of a fuzz test.
func Seed(f *testing.F, pattern string) {
	f.Helper()
	paths, err := filepath.Glob(Path(pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no golden messages %s: %v", pattern, err)
	}
	for _, path := range paths {
		message, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(message)
	}
}
