package audit

import (
	"time"

	"motorpool/cmd/chaos/verdict"
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
	v := newView(e)
	names := make([]string, len(laws))
	for i, law := range laws {
		names[i] = law.name
	}
	r := verdict.New(names...)
	for _, law := range laws {
		law.check(&checker{view: v, law: law.name, report: &r})
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
