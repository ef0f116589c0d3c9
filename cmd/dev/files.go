package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	envFile   = "env"
	unitsFile = "units.json"
)

// variable is a line of the env file.
type variable struct{ name, value string }

// writeFiles tells other programs how to reach the world. It is the sign that the
// world is ready, so the env file comes last.
func writeFiles(dir string, units any, env []variable) error {
	logins, err := json.MarshalIndent(units, "", "  ")
	if err != nil {
		return err
	}
	if err := writeWhole(filepath.Join(dir, unitsFile), logins); err != nil {
		return err
	}
	var text strings.Builder
	for _, v := range env {
		fmt.Fprintf(&text, "%s=%s\n", v.name, quoted(v.value))
	}
	return writeWhole(filepath.Join(dir, envFile), []byte(text.String()))
}

// quoted returns a value as a shell reads it: most are as they are, but a folder's name may
// hold anything.
func quoted(value string) string {
	if !strings.ContainsAny(value, " \t'\"\\$`&;|<>()*?[]#~!{}") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// removeFiles takes the sign away.
func removeFiles(dir string) error {
	var errs []error
	for _, name := range []string{envFile, unitsFile} {
		if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
