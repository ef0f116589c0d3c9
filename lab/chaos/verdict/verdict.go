// Package verdict is the result of an audit: how often each law was checked, and what violated it.
package verdict

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"motorpool/telematics"
)

// ShownPerLaw is how many violations of a law are printed in full.
const ShownPerLaw = 10

// Report is the result. Make it with New.
type Report struct {
	Checked    map[string]int // by law
	Violations []Violation
	tables     []table
}

// table is laws that are printed together.
type table struct {
	title string
	laws  []string
}

// Violation is a violation of a law.
type Violation struct {
	Law      string
	What     string
	Command  telematics.CommandID // zero: it is not about a single command
	Timeline string               // of all accounts; may be empty
}

// New returns an empty report of laws, which are printed in this order.
func New(laws ...string) Report {
	return Report{Checked: map[string]int{}, tables: []table{{"law", laws}}}
}

// AddLaw adds a law to the first table that was checked a number of times, and not violated yet.
func (r *Report) AddLaw(law string, checked int) {
	r.tables[0].laws = append(r.tables[0].laws, law)
	r.Checked[law] += checked
}

// AddTable adds laws that are printed separately. No other law has the same name.
func (r *Report) AddTable(title string, laws ...string) {
	r.tables = append(r.tables, table{title, laws})
}

// laws lists the laws of all tables.
func (r Report) laws() []string {
	var all []string
	for _, t := range r.tables {
		all = append(all, t.laws...)
	}
	return all
}

// Must counts a check of a law. If it does not hold, Must adds a violation and returns it.
func (r *Report) Must(law string, holds bool, what string, args ...any) *Violation {
	r.Checked[law]++
	if holds {
		return nil
	}
	r.Violations = append(r.Violations, Violation{Law: law, What: fmt.Sprintf(what, args...)})
	return &r.Violations[len(r.Violations)-1]
}

// Of returns the violations of a law.
func (r Report) Of(law string) []Violation {
	return slices.DeleteFunc(slices.Clone(r.Violations), func(v Violation) bool { return v.Law != law })
}

// Unchecked returns the laws that were never checked.
func (r Report) Unchecked() []string {
	return slices.DeleteFunc(r.laws(), func(law string) bool { return r.Checked[law] > 0 })
}

// Write prints how often each law was checked and violated, the first violations of each law, why
// the round proves nothing, if there is a reason, and the number of violations.
func (r Report) Write(out io.Writer, worthless string) {
	for _, one := range r.tables {
		fmt.Fprintln(out)
		t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(t, "%s\tchecked\tviolations\t\n", one.title)
		for _, law := range one.laws {
			fmt.Fprintf(t, "%s\t%d\t%d\t\n", law, r.Checked[law], len(r.Of(law)))
		}
		_ = t.Flush() // an error affects the output only
	}
	for _, law := range r.laws() {
		found := r.Of(law)
		for _, v := range found[:min(ShownPerLaw, len(found))] {
			fmt.Fprintf(out, "\nVIOLATION of %q: %s\n", law, v.What)
			for line := range strings.Lines(v.Timeline) {
				fmt.Fprint(out, "  ", line)
			}
		}
		if len(found) > ShownPerLaw {
			fmt.Fprintf(out, "\n%q: %d more violations\n", law, len(found)-ShownPerLaw)
		}
	}
	if worthless != "" {
		fmt.Fprintf(out, "this round proves nothing: %s\n", worthless)
	}
	fmt.Fprintf(out, "violations: %d\n", len(r.Violations))
}

// Count counts elements by a name.
func Count[T any, K ~string](all []T, name func(T) K) map[K]int {
	counts := map[K]int{}
	for _, one := range all {
		counts[name(one)]++
	}
	return counts
}

// WriteCounts prints a table, sorted by name.
func WriteCounts[K cmp.Ordered](out io.Writer, title, unit string, counts map[K]int) {
	fmt.Fprintf(out, "\n%s\t%s\n", title, unit)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%v\t%d\n", name, counts[name])
	}
}
