package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// operate runs the program as an operator does, beside the service and past every line, and returns what it printed. What
// it says beside the result goes to the listener, too, as soon as it is said.
func (w *world) operate(ctx context.Context, listener io.Writer, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.Binary, words...)
	cmd.Env = append(os.Environ(), "MOTORPOOL_DATABASE_URL="+w.postgres.URL(), "MOTORPOOL_SIGNING_KEYS="+w.path("signing.jwks"))
	var result, beside bytes.Buffer
	cmd.Stdout, cmd.Stderr = &result, &beside
	if listener != nil {
		cmd.Stderr = io.MultiWriter(&beside, listener)
	}
	if err := cmd.Run(); err != nil {
		return beside.String(), fmt.Errorf("motorpool %s: %w: %s", strings.Join(words, " "), err, strings.TrimSpace(beside.String()))
	}
	return strings.TrimSpace(result.String()), nil
}
