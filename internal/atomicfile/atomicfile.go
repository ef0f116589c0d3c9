// Package atomicfile replaces files whole: a reader, or a crash, finds the old content or the new
// one.
package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// Write replaces a file, or makes it, with mode 0600. It returns when the content is on the disk.
// It fails with the errors of package os, and leaves the file as it was.
func Write(file string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
