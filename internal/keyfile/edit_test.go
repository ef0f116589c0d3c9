package keyfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics/signing"
)

// editForever is the variable with the file that a child process edits until it is killed.
const editForever = "KEYFILE_TEST_EDIT_FOREVER"

func TestMain(m *testing.M) {
	if file := os.Getenv(editForever); file != "" {
		for {
			if err := Edit(context.Background(), file, rotate); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	goleak.VerifyTestMain(m)
}

// rotate adds a key, activates it, and removes the previous one.
func rotate(c signing.Keychain) (signing.Keychain, error) {
	key, err := signing.NewKey()
	if err != nil {
		return nil, err
	}
	old := c.Active().ID
	if c, err = c.Add(key, time.Now()); err != nil {
		return nil, err
	}
	if c, err = c.Activate(key.ID, time.Now()); err != nil {
		return nil, err
	}
	return c.Remove(old)
}

func add(c signing.Keychain) (signing.Keychain, error) {
	key, err := signing.NewKey()
	if err != nil {
		return nil, err
	}
	return c.Add(key, time.Now())
}

// newFile returns a file with one key.
func newFile(t *testing.T) string {
	t.Helper()
	chain, err := add(nil)
	require.NoError(t, err)
	jwks, err := chain.Encode()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "signing.jwks")
	require.NoError(t, os.WriteFile(file, jwks, 0o600))
	return file
}

func read(t *testing.T, file string) signing.Keychain {
	t.Helper()
	chain, err := Read(file)
	require.NoError(t, err)
	return chain
}

func inFolderOf(t *testing.T, file string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestEdit_ConcurrentEditsLoseNoChange(t *testing.T) {
	file := newFile(t)
	const operators, edits = 8, 3 // each waits at most 10 s; an edit may take 0.3 s on a slow disk
	var group sync.WaitGroup
	for range operators {
		group.Go(func() {
			for range edits {
				assert.NoError(t, Edit(t.Context(), file, add))
			}
		})
	}
	group.Wait()
	assert.Equal(t, len(read(t, file)), 1+operators*edits, "keys")
	if names := inFolderOf(t, file); len(names) != 1 {
		t.Errorf("files in the folder: %v, want one", names)
	}
}

func TestEdit_KeepsModeOwnerAndLink(t *testing.T) {
	file := newFile(t)
	link := filepath.Join(t.TempDir(), "link.jwks")
	owner, group := os.Getuid(), os.Getgid()
	if owner == 0 { // only root may change the owner
		owner, group = 10001, 10002
	}
	for _, err := range []error{os.Chmod(file, 0o640), os.Chown(file, owner, group), os.Symlink(file, link)} {
		require.NoError(t, err)
	}
	require.NoError(t, Edit(t.Context(), link, add))
	is, err := os.Lstat(file)
	require.NoError(t, err)
	stat := is.Sys().(*syscall.Stat_t)
	if is.Mode() != 0o640 || int(stat.Uid) != owner || int(stat.Gid) != group {
		t.Errorf("mode %v, owner %d:%d, want -rw-r----- %d:%d", is.Mode(), stat.Uid, stat.Gid, owner, group)
	}
	if l, err := os.Lstat(link); err != nil || l.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced by %v, %v", l, err)
	}
	assert.Equal(t, len(read(t, file)), 2, "keys")
}

func TestEdit_WritesOnlyIntoTheFolderOfTheFile(t *testing.T) {
	file := newFile(t)
	t.Chdir(filepath.Dir(file))
	t.Setenv("TMPDIR", filepath.Join(filepath.Dir(file), "none"))
	assert.NoError(t, Edit(t.Context(), filepath.Base(file), add))
}

func TestEdit_FailedEditChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		change  func(signing.Keychain) (signing.Keychain, error)
	}{
		"refused by the change": {"", func(signing.Keychain) (signing.Keychain, error) { return nil, errors.New("no") }},
		"invalid key": {"", func(c signing.Keychain) (signing.Keychain, error) {
			return c.Add(signing.Key{ID: "k"}, time.Now())
		}},
		"file that is not a JWKS": {"{", add},
		"file of public keys": {
			`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, add,
		},
		"keys of another purpose": {`{"keys":[{"kty":"oct","kid":"k","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`, add},
	} {
		t.Run(name, func(t *testing.T) {
			file := newFile(t)
			if test.content != "" {
				require.NoError(t, os.WriteFile(file, []byte(test.content), 0o600))
			}
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			if err := Edit(t.Context(), file, test.change); err == nil {
				t.Error("the edit returned no error")
			}
			after, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file is now %s, %v", after, err)
			}
			if names := inFolderOf(t, file); len(names) != 1 {
				t.Errorf("files in the folder: %v, want one", names)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "none.jwks")
	if err := Edit(t.Context(), missing, add); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v, want ErrNotExist", err)
	}
}

func TestEdit_WaitEndsWithItsContext(t *testing.T) {
	file := newFile(t)
	held, err := lock(t.Context(), file)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Edit(ctx, file, add); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), file) {
		t.Errorf("while another process edits: %v, want the deadline exceeded", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Edit(t.Context(), file, add) }()
	require.NoError(t, held.Close())
	assert.NoError(t, <-ended)
}

func TestEdit_KilledProcessLeavesACompleteFileAndNoCopies(t *testing.T) {
	file := newFile(t)
	// The rest of an edit that was killed in the middle of writing.
	other := ".signing.jwks-2-123" + unfinished // of an edit of another file
	for _, left := range []string{".signing.jwks-123" + unfinished, other} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), left), []byte(`{"keys":[{"kty":"O`), 0o600))
	}
	seen := map[string]bool{}
	for round := range 12 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), editForever+"="+file)
		require.NoError(t, child.Start())
		before := read(t, file).Active().ID
		for deadline := time.Now().Add(time.Minute); read(t, file).Active().ID == before; {
			if time.Now().After(deadline) {
				t.Fatal("the child process edits nothing")
			}
		}
		// Each round kills the child at another time.
		time.Sleep(time.Duration(round) * 700 * time.Microsecond)
		require.NoError(t, child.Process.Kill())
		_ = child.Wait() // returns that it was killed
		seen[read(t, file).Active().ID] = true
	}
	assert.Equal(t, len(seen), 12, "active keys in 12 rounds")
	require.NoError(t, Edit(t.Context(), file, add))
	assert.EqualSlices(t, inFolderOf(t, file), []string{other, "signing.jwks"}, "files in the folder")
}
