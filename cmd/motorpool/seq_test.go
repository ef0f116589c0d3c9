package main

import (
	"fmt"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/store/commands"
)

func TestSeqAdvance(t *testing.T) {
	postgres, url := recorded(t)
	numbering := func() commands.Numbering {
		t.Helper()
		n, err := commands.Numbers{DB: postgres}.Read(t.Context())
		require.NoError(t, err)
		return n
	}
	advance := func(args ...string) string {
		t.Helper()
		printed, err := output(t, append([]string{"seq", "advance", "--database-url", url}, args...)...)
		require.NoError(t, err)
		return printed
	}
	if got := advance("--dry-run"); !strings.Contains(got, "the last number is 0;") || !strings.Contains(got, "never jumped") ||
		numbering().Last != 0 {
		t.Errorf("dry run on a new database: %q", got)
	}
	first := advance()
	after := numbering().Last
	if after < 1_000_000_000_000_000 || !strings.Contains(first, fmt.Sprintf("to %d;", after)) {
		t.Errorf("first advance: %q, the last number is %d", first, after)
	}
	if got := advance("--dry-run"); !strings.Contains(got, fmt.Sprintf("the last number is %d;", after)) ||
		!strings.Contains(got, "of this Postgres") || numbering().Last != after {
		t.Errorf("dry run: %q", got)
	}
	if got := advance(); numbering().Last < after+10_000_000 {
		t.Errorf("second advance: %q, the last number is %d after %d", got, numbering().Last, after)
	}
	tool(t, "seq", "advance", "--database-url", "postgres://127.0.0.1:1/none").fails("right database")
}
