package audit

import (
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/telematics"
)

type law struct {
	name  string
	check func(*checker)
	all   bool // of all units
}

// The laws, in the order of the report. Those of all units are about the service alone; the others
// are about units of protocol v1.
var laws = []law{
	{"executed at most once", atMostOnce, false},
	{"never late", neverLate, false},
	{"nothing is published late", publishedInTime, true},
	{"never forged", neverForged, false},
	{"HTTP answers are true", answersAreTrue, false},
	{"unknown settles", unknownSettles, false},
	{"final in time", finalInTime, false},
	{"one at a time in a lane", oneAtATime, false},
	{"everything in Redis expires", redisExpires, true},
	{"audit log complete", logComplete, true},
	{"audit log append-only", logAppendOnly, true},
	{"seq grows", seqGrows, true},
	{"a halt holds", haltHolds, false},
	{"signed with a key of the unit", signedWithAKeyOfTheUnit, false},
	{"signed with a correct clock", signedWithACorrectClock, false},
	{"a fresh command is not refused", freshIsNotRefused, false},
	{"a unit's flood delays no other", unitFloodDelaysNoOther, false},
	{"a client's flood affects no other", clientFloodAffectsNoOther, true},
	{"ready means able", readyMeansAble, false},
	{"a lock stops no other", lockStopsNoOther, false},
	{"connections within the limit", withinConnections, true},
	{"presence is recorded", presenceIsRecorded, true},
	{"a month's end loses nothing", monthsEndLosesNothing, true},
	{"what an answer shows, later ones show", shownStays, true},
	{"a command that no fault strikes is executed", unbrokenIsExecuted, false},
	{"what is executed is answered so to its caller", executedIsAnswered, false},
}

const (
	// clockReading is by how much two times of the machine's clock may contradict the order of
	// events: Postgres stores milliseconds, and a process may be interrupted between reading the
	// clock and using the time.
	clockReading = 10 * time.Millisecond
	// outageReading is the accuracy of the times at which a server was unavailable, which is
	// polled.
	outageReading = time.Second
)

// Check checks every law.
func Check(e Evidence) verdict.Report {
	laws, others := laws, e.protocols()
	if e.Unrecorded != nil {
		laws, others = lawsOfLostCommits, nil
	}
	all, v1 := newView(e), newView(e.Of(telematics.DefaultProtocol))
	names := make([]string, len(laws))
	for i, law := range laws {
		names[i] = law.name
	}
	r := verdict.New(names...)
	for _, law := range laws {
		v := v1
		if law.all {
			v = all
		}
		law.check(&checker{view: v, law: law.name, report: &r})
	}
	for _, p := range others {
		f := newForeign(e, p)
		names := make([]string, len(othersLaws))
		for i, law := range othersLaws {
			names[i] = lawOf(p, law.name)
			law.check(&checker{view: f.view, law: names[i], report: &r}, f)
		}
		r.AddTable("law of "+string(p)+" units", names...)
	}
	return r
}

// checker checks one law.
type checker struct {
	*view
	law    string
	report *verdict.Report
	shown  int // violations with a timeline
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
	violation := chk.report.Must(chk.law, holds, what, args...)
	if violation == nil {
		return
	}
	if len(about.commands) > 0 {
		violation.Command = about.commands[0]
	}
	if chk.shown++; chk.shown <= verdict.ShownPerLaw {
		violation.Timeline = chk.timeline(about)
	}
}
