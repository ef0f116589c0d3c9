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

// relatedShown is the largest number of commands of one call for which all are shown.
const relatedShown = 10

// moment is one line of a timeline.
type moment struct {
	at      time.Time // zero: unknown
	witness string
	command telematics.CommandID
	text    string
}

// timeline returns everything in the accounts about a subject, in the order of true time. Times are
// relative to the request.
func (v *view) timeline(about subject) string {
	v.addRelated(&about)
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
	seen := map[moment]bool{} // without duplicates
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

// addRelated adds the calls that belong to the commands: those that created them, those whose
// answers name them, and those with the same key; and the commands of these calls.
func (v *view) addRelated(about *subject) {
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
		for _, c := range v.namedBy[id] {
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
		// A call for many vehicles has only the given ones.
		if made := v.made[id]; len(made) <= relatedShown {
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
		return fmt.Sprintf("command %s: not on record", id)
	}
	return fmt.Sprintf("command %s: %s, seq %d in %s, vehicle %d, unit %s", id, r.Action, r.Seq, r.Lane, r.Vehicle, r.Unit)
}

// zero returns the time of the first request that has a row, else of the first event.
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
	add := func(at time.Time, witness, text string, args ...any) {
		all = append(all, moment{at, witness, id, fmt.Sprintf(text, args...)})
	}
	if r := v.rows[id]; r != nil {
		add(r.Requested, "postgres", "requested, by call %s", r.RequestID)
		if !r.SentAt.IsZero() {
			add(r.SentAt, "postgres", "sent the first time")
		}
		if !r.ReceivedAt.IsZero() {
			add(r.ReceivedAt, "postgres", "received")
		}
		add(r.Deadline, "postgres", "deadline")
		add(r.Completed, "postgres", "%s after %d attempts%s", r.State, r.Attempts, lateText(r.Late))
	}
	for _, halt := range v.haltsDuring(id) {
		add(halt.Written, "operator", "commands are halted, of agency %d (0: all)", halt.Agency)
		add(halt.Lifting, "operator", "the halt ends")
	}
	for _, m := range v.messages[id] {
		add(
			m.At, "mqtt", "on the topic of unit %s, exp %s%s%s", m.Unit, clock(m.Expires),
			textIf(!m.Signed, ", NOT SIGNED"), textIf(m.Retained, ", RETAINED"),
		)
	}
	for _, e := range v.flights[id] {
		add(e.True, "car", "%s %s", e.Unit, event(e))
	}
	for _, l := range v.entries[id] {
		add(l.At, "log", "%s", l.text())
	}
	for _, e := range v.redisKeys[id] {
		add(time.Time{}, "redis", "%s expires in %v", e.Key, e.TTL)
	}
	return all
}

func (v *view) ofRequest(id string) []moment {
	var all []moment
	for _, c := range v.called[id] {
		requested := fmt.Sprintf(
			"%s of vehicle %d, instance %d, call %s%s", c.Action, c.Vehicle, c.Instance, id,
			textIf(c.Key != "", ", key "+c.Key),
		)
		all = append(all, moment{c.Start, "caller", c.Command, requested}, moment{c.End, "caller", c.Command, c.answer()})
	}
	for _, l := range v.logged[id] {
		all = append(all, moment{l.At, "log", l.Command, l.text()})
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
	return fmt.Sprintf(
		"call %s answered %d%s%s%s", c.RequestID, c.Status, words(string(c.Outcome), string(c.Code)), named,
		textIf(c.Replayed, ", replayed"),
	)
}

func (l *LogEntry) text() string {
	return fmt.Sprintf("entry %d: %s%s%s, call %s", l.ID, l.Action, words(string(l.Outcome), string(l.Code)), lateText(l.Late), l.RequestID)
}

// event returns the text of an event, with the time of the car's clock.
func event(e *simulator.Event) string {
	return fmt.Sprintf(
		"%s%s; the car's clock says %s, exp %s", e.Kind, words(string(e.Status), e.Reason, e.Detail), clock(e.Clock),
		clock(e.Expires),
	)
}

// words joins the texts that are not empty, each after a space.
func words(all ...string) string {
	text := ""
	for _, finalAnswer := range all {
		text += textIf(finalAnswer != "", " "+finalAnswer)
	}
	return text
}

func lateText(is bool) string { return textIf(is, ", late") }

func textIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// short returns the end of a command's id: ids of the same time differ there.
func short(id telematics.CommandID) string {
	if id == telematics.NoCommand {
		return ""
	}
	text := id.String()
	return text[len(text)-8:]
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
