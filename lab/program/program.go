// Package program builds programs of the product for tests that run them as processes.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Main builds a program, with the race detector if the calling test has it, runs the tests, and
// removes it. path receives where it is. Main returns the exit code of the tests.
func Main(pkg string, path *string, run func() int) (code int) {
	dir, err := os.MkdirTemp("", "motorpool-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		*path = filepath.Join(dir, filepath.Base(pkg))
		err = build(pkg, *path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

func build(pkg, to string) error {
	self, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("the test has no build information")
	}
	race := slices.Contains(self.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	args := []string{"build", "-ldflags=-s -w", fmt.Sprintf("-race=%v", race), "-o", to, pkg}
	if said, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, said)
	}
	return nil
}
