package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/keyfile"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
	"motorpool/telematics/signing"
)

func (l *live) rotatesKeysWhileRunning() {
	file := l.env["MOTORPOOL_SIGNING_KEYS"]
	edit := func(change func(signing.Keychain) (signing.Keychain, error)) {
		l.Helper()
		require.NoError(l, keyfile.Edit(l.Context(), file, change))
	}
	lock := func() {
		l.Helper()
		if r := l.call(http.MethodPost, "vehicles/1/control/lock", "ADMIN_TOKEN"); r.status != 200 {
			l.Errorf("lock: %d %+v", r.status, r.Error)
		}
	}
	key, err := signing.NewKey()
	require.NoError(l, err)
	var old string
	edit(func(c signing.Keychain) (signing.Keychain, error) {
		old = c.Active().ID
		return c.Add(key, time.Now())
	})
	l.eventually("the cars and other units have the new key", func() bool { return len(l.published()) == 2 })
	lock()
	edit(func(c signing.Keychain) (signing.Keychain, error) { return c.Activate(key.ID, time.Now()) })
	l.eventually("the service signs with the new key", func() bool { return l.signingKey() == key.ID })
	lock()
	edit(func(c signing.Keychain) (signing.Keychain, error) { return c.Remove(old) })
	l.eventually("the old key is removed", func() bool { return len(l.published()) == 1 })
	lock()
}

// published returns the keys that are published for other units.
func (l *live) published() signing.Keyring {
	jwks, err := os.ReadFile(filepath.Join(l.dir, folder.KeyringFile))
	require.NoError(l, err)
	ring, err := signing.ParseKeyring(jwks)
	require.NoError(l, err)
	return ring
}

func (l *live) signingKey() string {
	values, err := metricstest.Read(l.Context(), http.DefaultClient, l.env["INTERNAL_URL"]+"/metrics")
	require.NoError(l, err)
	return values.Label("motorpool_signing_key_info", "key")
}

func (l *live) eventually(what string, holds func() bool) {
	l.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(l, "within a minute this did not happen: %s", what)
		}
	}
}

func TestWriteFiles_ShellReadsTheVariables(t *testing.T) {
	dir := t.TempDir()
	for _, value := range []string{"/home/anna/motor pool/.dev/signing.jwks", "it's", `a"b$c\d`, "http://127.0.0.1:8080", "eyJ.x-y_z"} {
		require.NoError(t, writeFiles(dir, nil, []variable{{"V", value}}))
		read, err := exec.Command("sh", "-c", `. "$0"; printf %s "$V"`, filepath.Join(dir, envFile)).Output()
		if err != nil || string(read) != value {
			t.Errorf("%q is read as %q, %v", value, read, err)
		}
	}
}
