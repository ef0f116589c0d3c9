package keyfile

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics/signing"
)

// watched is a file that a source watches, in virtual time.
type watched struct {
	*testing.T
	file string

	mu      sync.Mutex // guards the fields below
	log     bytes.Buffer
	changes []string // ids of the keys that became active
}

func (w *watched) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(line)
}

func (w *watched) change(c signing.Keychain) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c.Active().ID)
}

// said returns what was logged since the last call, and which keys have become active.
func (w *watched) said() (logged string, changes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.log.Reset()
	return w.log.String(), w.changes
}

func watch(t *testing.T, test func(*watched)) {
	t.Helper()
	file := newFile(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{T: t, file: file}
		source := Source[signing.Keychain]{
			Name: file, Every: time.Second, Parse: signing.ParseKeychain, Log: slog.New(slog.NewTextHandler(w, nil)),
			Read: func(context.Context) ([]byte, error) { return os.ReadFile(file) },
		}
		_, err := source.Load(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			assert.NoError(t, source.Watch(ctx, w.change))
		})
		defer running.Wait()
		defer cancel()
		test(w)
	})
}

// pass waits for a number of checks of the file.
func (w *watched) pass(looks int) {
	time.Sleep(time.Duration(looks) * time.Second)
	synctest.Wait()
}

func (w *watched) write(content []byte) {
	w.Helper()
	require.NoError(w, os.WriteFile(w.file, content, 0o600))
}

func TestSource_ChangeIsReportedOnce(t *testing.T) {
	watch(t, func(w *watched) {
		w.pass(3)
		if _, changes := w.said(); len(changes) != 0 {
			t.Fatalf("an unchanged file was reported as changed: %v", changes)
		}
		require.NoError(t, Edit(context.Background(), w.file, rotate))
		w.pass(3)
		logged, changes := w.said()
		if len(changes) != 1 || changes[0] != read(t, w.file).Active().ID || logged != "" {
			t.Errorf("changes %v, logged %q", changes, logged)
		}
	})
}

func TestSource_ChangeWithTheSameSizeAndTimeIsReported(t *testing.T) {
	watch(t, func(w *watched) {
		date := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		text, err := os.ReadFile(w.file)
		require.NoError(t, err)
		for _, id := range []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"} {
			w.write(bytes.ReplaceAll(text, []byte(read(t, w.file).Active().ID), []byte(id)))
			text, _ = os.ReadFile(w.file)
			require.NoError(t, os.Chtimes(w.file, date, date))
			w.pass(1)
		}
		if _, changes := w.said(); len(changes) != 2 {
			t.Errorf("changes %v, want 2", changes)
		}
	})
}

func TestSource_MissingOrInvalidFileIsLoggedOnce(t *testing.T) {
	watch(t, func(w *watched) {
		good, err := os.ReadFile(w.file)
		require.NoError(t, err)
		for _, problem := range []struct {
			name, said string
			make       func()
		}{
			{"truncated", "parse signing keys", func() { w.write(good[:len(good)/2]) }},
			{"empty", "parse signing keys", func() { w.write(nil) }},
			{"no keys", "the set is empty", func() { w.write([]byte(`{"keys":[]}`)) }},
			{"missing", "no such file", func() {
				require.NoError(t, os.Remove(w.file))
			}},
		} {
			problem.make()
			w.pass(5)
			logged, _ := w.said()
			if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, problem.said) || !strings.Contains(logged, "level=WARN") {
				t.Errorf("%s: logged %s, want one warning about %q", problem.name, logged, problem.said)
			}
		}
		w.write(good)
		w.pass(5)
		if logged, changes := w.said(); strings.Count(logged, "readable again") != 1 || len(changes) != 0 {
			t.Errorf("after the same keys are back: changes %v, logged %s", changes, logged)
		}
	})
}
