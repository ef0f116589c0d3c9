package audit

import (
	"fmt"
	"time"

	"motorpool/telematics"
)

// The laws that the evidence is held against, in the order of the report.
var laws = []struct {
	name  string
	check func(*hearing)
}{
	{"executed at most once", atMostOnce},
	{"never late", neverLate},
	{"never forged", neverForged},
	{"HTTP told the truth", toldTheTruth},
	{"unknown settles", unknownSettles},
	{"final in time", finalInTime},
	{"one at a time in a lane", oneAtATime},
	{"nothing left in Redis", nothingLeft},
	{"history complete", historyComplete},
	{"history append-only", historyAppendOnly},
	{"seq grows", seqGrows},
	{"a halt holds", haltHolds},
	{"signed for its unit", signedForItsUnit},
	{"signed by a right clock", signedByARightClock},
	{"a fresh command is not refused", freshIsNotRefused},
	{"a flood starves nobody", aFloodStarvesNobody},
	{"a client's flood harms nobody", clientFloodHarmsNobody},
}

const (
	// clockReading is by how much two readings of the one clock of the machine may contradict the order of what they
	// date: the record keeps milliseconds, and who reads a clock may be interrupted before using it.
	clockReading = 10 * time.Millisecond
	// outageReading is how exactly is known when a server was away: its watcher asks now and then.
	outageReading = time.Second
)

// Report is what became of each law.
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

// Violation is one breach of a law.
type Violation struct {
	Law     string
	What    string
	Command telematics.CommandID // zero: it is about no single command
	Story   string               // across the four accounts; empty after the first ten of a law
}

// Check holds the evidence against every law.
func Check(e Evidence) Report {
	v := newView(e)
	var r Report
	for _, law := range laws {
		h := &hearing{view: v, law: law.name}
		law.check(h)
		r.Laws = append(r.Laws, LawResult{Law: law.name, Checked: h.checked, Violations: len(h.violations)})
		r.Violations = append(r.Violations, h.violations...)
	}
	return r
}

// hearing is the trial of one law.
type hearing struct {
	*view
	law        string
	checked    int
	violations []Violation
}

// subject is what a check is about: whose story is told where it fails.
type subject struct {
	commands []telematics.CommandID
	requests []string
}

func command(ids ...telematics.CommandID) subject { return subject{commands: ids} }

func request(id string) subject { return subject{requests: []string{id}} }

// called is the subject of a call: what it said, and the command that it named.
func called(c *Call) subject {
	about := request(c.RequestID)
	if c.Command != telematics.NoCommand {
		about.commands = []telematics.CommandID{c.Command}
	}
	return about
}

// must counts a check, and notes a violation where it does not hold.
func (h *hearing) must(holds bool, about subject, what string, args ...any) {
	h.checked++
	if holds {
		return
	}
	breach := Violation{Law: h.law, What: fmt.Sprintf(what, args...)}
	if len(about.commands) > 0 {
		breach.Command = about.commands[0]
	}
	if len(h.violations) < toldPerLaw {
		breach.Story = h.story(about)
	}
	h.violations = append(h.violations, breach)
}
