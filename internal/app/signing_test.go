package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"motorpool/internal/require"
)

func TestServe_WarnsOfSigningKeysThatOthersMayRead(t *testing.T) {
	keys, err := os.ReadFile("../../telematics/testdata/keys.jwks")
	require.NoError(t, err)
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		file := filepath.Join(t.TempDir(), "signing.jwks")
		require.NoError(t, os.WriteFile(file, keys, 0o600))
		require.NoError(t, os.Chmod(file, mode))
		var log bytes.Buffer
		_, err := (Config{SigningKeys: file}).signingKeys(slog.New(slog.NewTextHandler(&log, nil)))
		require.NoError(t, err)
		if strings.Contains(log.String(), "chmod o=") != warns {
			t.Errorf("mode %v: warned %t, want %t: %s", mode, !warns, warns, log.String())
		}
	}
}
