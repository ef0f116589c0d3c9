package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// toldPerLaw is how many violations of a law are told in full.
const toldPerLaw = 10

// moment is one line of a story.
type moment struct {
	at      time.Time // zero: when is not known
	witness string
	command telematics.CommandID
	text    string
}

// story tells everything that the four witnesses say of a subject, in the order of true time. Times are counted from the
// request.
func (v *view) story(about subject) string {
	v.widen(&about)
	var all []moment
	for _, id := range about.commands {
		all = append(all, v.ofCommand(id)...)
	}
	for _, id := range about.requests {
		all = append(all, v.ofRequest(id)...)
	}
	slices.SortStableFunc(all, func(a, b moment) int {
		if a.at.IsZero() || b.at.IsZero() { // at the end
			return cmp.Compare(b.at.Unix(), a.at.Unix())
		}
		return a.at.Compare(b.at)
	})
	seen := map[moment]bool{} // what two paths led to is told once
	all = slices.DeleteFunc(all, func(m moment) bool {
		again := seen[m]
		seen[m] = true
		return again
	})
	var b strings.Builder
	for _, id := range about.commands {
		fmt.Fprintf(&b, "%s  %s\n", short(id), v.title(id))
	}
	zero := v.zero(about, all)
	if !zero.IsZero() {
		fmt.Fprintf(&b, "0 ms is %s\n", clock(zero))
	}
	for _, m := range all {
		when := "at the end"
		if !m.at.IsZero() {
			when = fmt.Sprintf("%+d ms", m.at.Sub(zero).Round(time.Millisecond).Milliseconds())
		}
		fmt.Fprintf(&b, "%12s  %-8s  %-8s  %s\n", when, m.witness, short(m.command), m.text)
	}
	return b.String()
}

// widen adds the calls that belong to the commands: those that made them, those that were told of them, and those with
// the same key; and the commands that these calls made.
func (v *view) widen(about *subject) {
	keys := map[string]bool{}
	belongs := func(c *Call) {
		about.requests = append(about.requests, c.RequestID)
		if c.Key != "" {
			keys[c.Key] = true
		}
	}
	for _, id := range about.requests {
		for _, c := range v.called[id] {
			belongs(c)
		}
	}
	for _, id := range about.commands {
		for _, c := range v.naming[id] {
			belongs(c)
		}
		if r := v.rows[id]; r != nil {
			for _, c := range v.called[r.RequestID] {
				belongs(c)
			}
		}
	}
	for i := range v.Calls {
		if len(keys) > 0 && keys[v.Calls[i].Key] {
			about.requests = append(about.requests, v.Calls[i].RequestID)
		}
	}
	slices.Sort(about.requests)
	about.requests = slices.Compact(about.requests)
	for _, id := range about.requests {
		if made := v.made[id]; len(made) <= toldPerLaw { // a call for many vehicles tells of those in question only
			for _, r := range made {
				if !slices.Contains(about.commands, r.ID) {
					about.commands = append(about.commands, r.ID)
				}
			}
		}
	}
}

func (v *view) title(id telematics.CommandID) string {
	r := v.rows[id]
	if r == nil {
		return fmt.Sprintf("command %s: the record does not know it", id)
	}
	return fmt.Sprintf("command %s: %s, seq %d in %s, vehicle %d, unit %s", id, r.Action, r.Seq, r.Lane, r.Vehicle, r.Unit)
}

// zero returns the request of the first command that has a row, else the first thing that happened.
func (v *view) zero(about subject, all []moment) time.Time {
	for _, id := range about.commands {
		if r := v.rows[id]; r != nil {
			return r.Requested
		}
	}
	for _, m := range all {
		if !m.at.IsZero() {
			return m.at
		}
	}
	return time.Time{}
}

func (v *view) ofCommand(id telematics.CommandID) []moment {
	var all []moment
	tell := func(at time.Time, witness, text string, args ...any) {
		all = append(all, moment{at, witness, id, fmt.Sprintf(text, args...)})
	}
	if r := v.rows[id]; r != nil {
		tell(r.Requested, "postgres", "requested, by call %s", r.RequestID)
		if !r.SentAt.IsZero() {
			tell(r.SentAt, "postgres", "sent the first time")
		}
		if !r.ReceivedAt.IsZero() {
			tell(r.ReceivedAt, "postgres", "received")
		}
		tell(r.Deadline, "postgres", "deadline")
		tell(r.Completed, "postgres", "%s after %d attempts%s", r.State, r.Attempts, late(r.Late))
	}
	for _, halt := range v.haltsDuring(id) {
		tell(halt.Written, "operator", "commands are halted, of agency %d (0: of all)", halt.Agency)
		tell(halt.Lifting, "operator", "the halt is lifted")
	}
	for _, m := range v.air[id] {
		tell(m.At, "mqtt", "on the topic of unit %s, exp %s%s%s", m.Unit, clock(m.Expires), mark(!m.Signed, ", NOT SIGNED"), mark(m.Retained, ", RETAINED"))
	}
	for _, e := range v.flights[id] {
		tell(e.True, "car", "%s %s", e.Unit, event(e))
	}
	for _, l := range v.lines[id] {
		tell(l.At, "history", "%s", l.text())
	}
	for _, e := range v.left[id] {
		tell(time.Time{}, "redis", "%s is left, for %v", e.Key, e.TTL)
	}
	return all
}

func (v *view) ofRequest(id string) []moment {
	var all []moment
	for _, c := range v.called[id] {
		asked := fmt.Sprintf("%s of vehicle %d, instance %d, call %s%s", c.Action, c.Vehicle, c.Instance, id, mark(c.Key != "", ", key "+c.Key))
		all = append(all, moment{c.Start, "caller", c.Command, asked}, moment{c.End, "caller", c.Command, c.answer()})
	}
	for _, l := range v.noted[id] {
		all = append(all, moment{l.At, "history", l.Command, l.text()})
	}
	return all
}

func (c *Call) answer() string {
	if c.Status == 0 {
		return fmt.Sprintf("call %s got no answer", c.RequestID)
	}
	named := ""
	if c.Command != telematics.NoCommand {
		named = ", command " + short(c.Command)
	}
	return fmt.Sprintf("call %s answered %d%s%s%s", c.RequestID, c.Status, words(string(c.Outcome), string(c.Code)), named, mark(c.Replayed, ", replayed"))
}

func (l *Line) text() string {
	return fmt.Sprintf("line %d: %s%s%s, call %s", l.ID, l.Action, words(string(l.Outcome), string(l.Code)), late(l.Late), l.RequestID)
}

// event tells both clocks: the line's time is the true one.
func event(e *simulator.Event) string {
	return fmt.Sprintf("%s%s; the car's clock says %s, exp %s", e.Kind, words(string(e.Status), e.Reason, e.Detail), clock(e.Clock), clock(e.Expires))
}

// words joins those that there are, each behind a space.
func words(all ...string) string {
	text := ""
	for _, word := range all {
		text += mark(word != "", " "+word)
	}
	return text
}

func late(is bool) string { return mark(is, ", late") }

func mark(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// short names a command within a story: ids of one moment differ at their ends.
func short(id telematics.CommandID) string {
	if id == telematics.NoCommand {
		return ""
	}
	text := id.String()
	return text[len(text)-8:]
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
