package audit

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"motorpool/telematics"
)

// The laws, in the order of the report.
var laws = []struct {
	name  string
	check func(*checker)
}{
	{"executed at most once", atMostOnce},
	{"never late", neverLate},
	{"never forged", neverForged},
	{"HTTP answers are true", answersAreTrue},
	{"unknown settles", unknownSettles},
	{"final in time", finalInTime},
	{"one at a time in a lane", oneAtATime},
	{"everything in Redis expires", redisExpires},
	{"audit log complete", logComplete},
	{"audit log append-only", logAppendOnly},
	{"seq grows", seqGrows},
	{"a halt holds", haltHolds},
	{"signed with a key of the unit", signedWithAKeyOfTheUnit},
	{"signed with a correct clock", signedWithACorrectClock},
	{"a fresh command is not refused", freshIsNotRefused},
	{"a unit's flood delays no other", unitFloodDelaysNoOther},
	{"a client's flood affects no other", clientFloodAffectsNoOther},
}

const (
	// clockReading is by how much two times of the machine's clock may contradict the order of events: Postgres stores
	// milliseconds, and a process may be interrupted between reading the clock and using the time.
	clockReading = 10 * time.Millisecond
	// outageReading is the accuracy of the times at which a server was unavailable, which is polled.
	outageReading = time.Second
)

// Report is the result of each law.
type Report struct {
	Laws       []LawResult
	Violations []Violation
}

// LawResult says how often a law was checked, and how often it was broken.
type LawResult struct {
	Law        string
	Checked    int
	Violations int
}

// Violation is one of a law.
type Violation struct {
	Law      string
	What     string
	Command  telematics.CommandID // zero: it is not about a single command
	Timeline string               // of all accounts; empty after the first ten of a law
}

// Check checks every law.
func Check(e Evidence) Report {
	v := newView(e)
	var r Report
	for _, law := range laws {
		chk := &checker{view: v, law: law.name}
		law.check(chk)
		r.Laws = append(r.Laws, LawResult{Law: law.name, Checked: chk.checked, Violations: len(chk.violations)})
		r.Violations = append(r.Violations, chk.violations...)
	}
	return r
}

// checker checks one law.
type checker struct {
	*view
	law        string
	checked    int
	violations []Violation
}

// subject is what a check is about, for the timeline of a violation.
type subject struct {
	commands []telematics.CommandID
	requests []string
}

func command(ids ...telematics.CommandID) subject { return subject{commands: ids} }

func request(id string) subject { return subject{requests: []string{id}} }

// called is the subject of a call: its request, and the command in its answer.
func called(c *Call) subject {
	about := request(c.RequestID)
	if c.Command != telematics.NoCommand {
		about.commands = []telematics.CommandID{c.Command}
	}
	return about
}

// must counts a check, and adds a violation if it does not hold.
func (chk *checker) must(holds bool, about subject, what string, args ...any) {
	chk.checked++
	if holds {
		return
	}
	breach := Violation{Law: chk.law, What: fmt.Sprintf(what, args...)}
	if len(about.commands) > 0 {
		breach.Command = about.commands[0]
	}
	if len(chk.violations) < shownPerLaw {
		breach.Timeline = chk.timeline(about)
	}
	chk.violations = append(chk.violations, breach)
}

// Write prints how often each law was checked and violated, then the timeline of each violation: the first ten of each law
// in full, the number of the others.
func (r Report) Write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "law\tchecked\tviolations\t")
	for _, l := range r.Laws {
		fmt.Fprintf(table, "%s\t%d\t%d\t\n", l.Law, l.Checked, l.Violations)
	}
	_ = table.Flush() // an error affects the output only
	settlementLogged := map[string]int{}
	for _, v := range r.Violations {
		if settlementLogged[v.Law]++; settlementLogged[v.Law] > shownPerLaw {
			continue
		}
		fmt.Fprintf(w, "\nVIOLATION of %q: %s\n", v.Law, v.What)
		for line := range strings.Lines(v.Timeline) {
			fmt.Fprint(w, "  ", line)
		}
	}
	for _, l := range r.Laws {
		if l.Violations > shownPerLaw {
			fmt.Fprintf(w, "\n%q: %d more violations\n", l.Law, l.Violations-shownPerLaw)
		}
	}
}
