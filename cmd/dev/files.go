package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"motorpool/internal/atomicfile"
)

const (
	envFile   = "env"
	unitsFile = "units.json"
)

// variable is a line of the env file.
type variable struct{ name, value string }

// writeFiles writes the files with which other programs reach the environment. The env file signals
// that it is ready, so it is written last.
func writeFiles(dir string, units any, env []variable) error {
	logins, err := json.MarshalIndent(units, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(dir, unitsFile), logins); err != nil {
		return err
	}
	var text strings.Builder
	for _, v := range env {
		fmt.Fprintf(&text, "%s=%s\n", v.name, quoted(v.value))
	}
	return atomicfile.Write(filepath.Join(dir, envFile), []byte(text.String()))
}

// quoted returns a value for a shell, with quotes if it needs them. A shell expands no patterns
// in an assignment.
func quoted(value string) string {
	if !strings.ContainsAny(value, " \t'\"\\$`&;|<>()#~!{}") {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// removeFiles removes the files of writeFiles.
func removeFiles(dir string) error {
	var errs []error
	for _, name := range []string{envFile, unitsFile} {
		if err := os.Remove(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
