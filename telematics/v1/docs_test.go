package v1

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"motorpool/internal/require"
)

// The author of a unit has only docs/protocol.md.
func TestProtocolDocument_NamesTopicsAndLimits(t *testing.T) {
	document, err := os.ReadFile("../../docs/protocol.md")
	require.NoError(t, err)
	want := []string{fmt.Sprintf("| `commands` in a report | %d |", maxAnswers)}
	for _, channel := range channels {
		want = append(want, "`motorpool/v1/{unit}/"+string(channel)+"`")
	}
	for _, text := range want {
		if !strings.Contains(string(document), text) {
			t.Errorf("docs/protocol.md lacks %s", text)
		}
	}
}
