package keyfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"motorpool/guard"
	"motorpool/telematics/signing"
)

const (
	lockPatience = 10 * time.Second
	lockEvery    = 20 * time.Millisecond
	unfinished   = ".new" // suffix of a new file before it replaces the old one
)

// Read returns the keychain of a file. It fails where the file cannot be read, or is no keychain.
func Read(file string) (signing.Keychain, error) {
	jwks, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	chain, err := signing.ParseKeychain(jwks)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return chain, nil
}

// Edit replaces the keychain of a file by the one that change returns, as EditContent does. It
// fails as EditContent does, and with the error of change.
func Edit(ctx context.Context, file string, change func(signing.Keychain) (signing.Keychain, error)) error {
	return EditContent(ctx, file, func(jwks []byte) ([]byte, error) {
		chain, err := signing.ParseKeychain(jwks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if chain, err = change(chain); err != nil {
			return nil, err
		}
		jwks, err = chain.Encode()
		return append(jwks, '\n'), err
	}, func(written []byte) error {
		_, err := signing.ParseKeychain(written)
		return err
	})
}

// EditContent atomically replaces the content of a file by the one that change returns, with the
// same mode and owner, after check has accepted the written file. It waits at most 10 s for another
// edit to end, also of another process. On any error the file is unchanged.
func EditContent(ctx context.Context, file string, change func([]byte) ([]byte, error), check func(written []byte) error) error {
	file, err := filepath.EvalSymlinks(file) // a link stays one
	if err != nil {
		return err
	}
	held, err := lock(ctx, file)
	if err != nil {
		return err
	}
	defer held.Close()
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if content, err = change(content); err != nil {
		return err
	}
	if err := replace(held, file, content, check); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// lock opens and locks the file. No other process edits it until it is closed. The lock belongs to
// the file that was opened: if that was replaced meanwhile, lock waits for the new one.
func lock(ctx context.Context, path string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for {
		file, err := os.OpenFile(path, os.O_RDWR, 0) // to write: NFS locks nothing else
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && isStill(file, path) {
			return file, nil
		}
		_ = file.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !guard.Pause(ctx, lockEvery) {
			return nil, fmt.Errorf("lock %s: another program has been changing it all the time: %w", path, ctx.Err())
		}
	}
}

func isStill(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(opened, there)
}

// replace puts a new file in the place of the old one, in one step.
func replace(old *os.File, path string, content []byte, check func([]byte) error) error {
	was, err := old.Stat()
	if err != nil {
		return err
	}
	dir, base := filepath.Dir(path), filepath.Base(path)
	if err := removeAbandoned(dir, base); err != nil {
		return err
	}
	// In the same folder: a rename does not cross file systems.
	file, err := os.CreateTemp(dir, "."+base+"-*"+unfinished)
	if err != nil {
		return err
	}
	err = errors.Join(fill(file, was, content), file.Close())
	if err == nil {
		err = readBack(file.Name(), check)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("%w (a mount of the file alone cannot be replaced: mount its folder)", err)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncFolder(dir)
}

// removeAbandoned removes the unfinished files of edits that were killed: they have private keys.
// The caller holds the lock, so no process is writing them.
func removeAbandoned(dir, base string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		middle, is := strings.CutPrefix(strings.TrimSuffix(e.Name(), unfinished), "."+base+"-")
		// With a dash it may be that of another file.
		if is && strings.HasSuffix(e.Name(), unfinished) && !strings.Contains(middle, "-") {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill writes the content, with the owner and rights of the old file, and syncs it to the disk.
func fill(file *os.File, was os.FileInfo, content []byte) error {
	is, err := file.Stat()
	if err != nil {
		return err
	}
	owner, mine := was.Sys().(*syscall.Stat_t), is.Sys().(*syscall.Stat_t)
	if owner.Uid != mine.Uid || owner.Gid != mine.Gid {
		if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("keep the owner: %w", err)
		}
	}
	// After the owner, whose change may clear bits of the mode.
	if err := file.Chmod(was.Mode().Perm()); err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return err
	}
	return file.Sync()
}

func readBack(path string, check func([]byte) error) error {
	written, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	return check(written)
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
