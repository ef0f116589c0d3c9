package audit

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Write prints how often each law was checked and broken, then the story of each violation: of each law the first ten
// in full, the rest counted.
func (r Report) Write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "law\tchecked\tviolations\t")
	for _, l := range r.Laws {
		fmt.Fprintf(table, "%s\t%d\t%d\t\n", l.Law, l.Checked, l.Violations)
	}
	_ = table.Flush() // what the writer cannot take is lost to its reader alone
	told := map[string]int{}
	for _, v := range r.Violations {
		if told[v.Law]++; told[v.Law] > toldPerLaw {
			continue
		}
		fmt.Fprintf(w, "\nVIOLATION of %q: %s\n", v.Law, v.What)
		for line := range strings.Lines(v.Story) {
			fmt.Fprint(w, "  ", line)
		}
	}
	for _, l := range r.Laws {
		if l.Violations > toldPerLaw {
			fmt.Fprintf(w, "\n%q: %d more violations\n", l.Law, l.Violations-toldPerLaw)
		}
	}
}
