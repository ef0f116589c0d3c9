package audit

import (
	"fmt"
	"io"

	"motorpool/telematics"
)

// Report is what the audit found.
type Report struct {
	Laws       []LawResult
	Violations []Violation
}

// LawResult is one law.
type LawResult struct {
	Law                 string
	Checked, Violations int
}

// Violation is one breach.
type Violation struct {
	Law, What string
	Command   telematics.CommandID
	Story     string
}

// Check is a stand-in.
func Check(e Evidence) Report {
	return Report{Laws: []LawResult{{Law: "stand-in", Checked: len(e.Commands)}}}
}

// Write prints it.
func (r Report) Write(w io.Writer) {
	for _, l := range r.Laws {
		fmt.Fprintf(w, "%-40s %d %d\n", l.Law, l.Checked, l.Violations)
	}
}
