package telematics

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

func TestLifecycle_AllowsExactlyTheseSteps(t *testing.T) {
	may := map[State][]State{
		Accepted: {Sent, Received, Succeeded, Rejected, Failed, Expired, Unknown},
		Sent:     {Received, Succeeded, Rejected, Failed, Unknown},
		Received: {Succeeded, Rejected, Failed, Unknown},
		Unknown:  {Succeeded, Rejected, Failed},
		Expired:  {Succeeded, Rejected, Failed},
		Rejected: {Succeeded, Failed},
	}
	if len(States) != 8 || len(lifecycle) != len(States) {
		t.Fatalf("%d states listed, %d in the table, want 8", len(States), len(lifecycle))
	}
	for _, from := range States {
		for _, to := range States {
			assert.Equal(t, from.MayBecome(to), slices.Contains(may[from], to), "%s may become %s", from, to)
			assert.Equal(t, slices.Contains(to.Before(), from), slices.Contains(may[from], to), "%s.Before() holds %s", to, from)
		}
	}
}

// A statement that settles one command does not wait for a change of its row that is in flight
// where the state that it sees does not allow what it wants: then no later state may allow it,
// either.
func TestLifecycle_StepsMayBeSkipped(t *testing.T) {
	for _, from := range States {
		for _, by := range lifecycle[from].next {
			for _, to := range lifecycle[by].next {
				if !from.MayBecome(to) {
					t.Errorf("%s may become %s, which may become %s, but not directly", from, by, to)
				}
			}
		}
	}
}

func TestState_IsOpenOrFinalWithAnOutcome(t *testing.T) {
	cases := map[State]struct {
		open, final bool
		outcome     Outcome
	}{
		Accepted:  {open: true, outcome: Undecided},
		Sent:      {open: true, outcome: Undecided},
		Received:  {open: true, outcome: Undecided},
		Unknown:   {outcome: MayHave},
		Expired:   {outcome: NotExecuted},
		Succeeded: {final: true, outcome: Executed},
		Rejected:  {final: true, outcome: NotExecuted},
		Failed:    {final: true, outcome: HasFailed},
	}
	for _, s := range States {
		want := cases[s]
		if s.IsOpen() != want.open || s.IsFinal() != want.final || s.Outcome() != want.outcome {
			t.Errorf("%s: open %t final %t outcome %q, want %+v", s, s.IsOpen(), s.IsFinal(), s.Outcome(), want)
		}
		if s.IsOpen() != (s.Outcome() == Undecided) {
			t.Errorf("%s: an open state must have no outcome, and a settled one must", s)
		}
	}
}

func TestState_UnknownOneAllowsNothing(t *testing.T) {
	if s := State("lost"); s.IsOpen() || s.MayBecome(Sent) || len(s.Before()) != 0 {
		t.Error("an unknown state is open, or may change")
	}
}

// The diagram in the comment of State must agree with the table.
func TestLifecycle_DiagramAgreesWithTheTable(t *testing.T) {
	drawn := drawnArrows(t)
	for from, targets := range drawn {
		for _, to := range targets {
			if !from.MayBecome(to) {
				t.Errorf("in the diagram, but not in the table: %s to %s", from, to)
			}
		}
	}
	for _, from := range States {
		for _, to := range lifecycle[from].next {
			if from == Expired || from == Rejected {
				continue // described at the table, not in the diagram
			}
			if !reachable(drawn, from, to) {
				t.Errorf("in the table, but not along the diagram's arrows: %s to %s", from, to)
			}
		}
	}
}

// drawnArrows reads the diagram above type State. A branch starts at the state of the first line
// that is above its corner.
func drawnArrows(t *testing.T) map[State][]State {
	t.Helper()
	source, err := os.ReadFile("state.go")
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(source)) {
		if drawing, ok := strings.CutPrefix(line, "//\t"); ok && strings.Contains(line, "──►") {
			lines = append(lines, strings.TrimRight(drawing, "\n"))
		}
	}
	if len(lines) != 4 {
		t.Fatalf("the diagram has %d lines with arrows, want 4", len(lines))
	}
	arrows := map[State][]State{}
	var trunk []State
	for part := range strings.SplitSeq(lines[0], "──►") {
		names := states(part)
		if len(trunk) > 0 {
			last := trunk[len(trunk)-1]
			arrows[last] = append(arrows[last], names...)
		}
		trunk = append(trunk, names[0])
	}
	for _, line := range lines[1:] {
		parts := strings.Split(line, "──►")
		target := states(parts[1])[0]
		column := 0
		for _, corner := range parts[0] {
			if strings.ContainsRune("├└┴", corner) {
				from := above(lines[0], column)
				arrows[from] = append(arrows[from], target)
			}
			column++
		}
		if len(parts) == 3 && strings.Contains(parts[2], "late answer") {
			arrows[target] = append(arrows[target], Succeeded, Rejected, Failed)
		}
	}
	return arrows
}

// states lists the states at the beginning of a part of the diagram.
func states(part string) []State {
	part, _, _ = strings.Cut(part, ":")
	var found []State
	for word := range strings.FieldsSeq(part) {
		if slices.Contains(States, State(word)) {
			found = append(found, State(word))
		}
	}
	return found
}

// above returns the state whose name covers a column of the diagram's first line.
func above(trunk string, column int) State {
	for _, s := range States {
		if i := strings.Index(trunk, string(s)); i >= 0 {
			start := utf8.RuneCountInString(trunk[:i])
			if column >= start && column < start+len(s) {
				return s
			}
		}
	}
	return ""
}

func reachable(arrows map[State][]State, from, to State) bool {
	return slices.ContainsFunc(arrows[from], func(next State) bool {
		return next == to || reachable(arrows, next, to)
	})
}
