// Package dialecttest is the contract of telematics.Dialect as a test suite. A new
// dialect runs it with sample messages.
package dialecttest

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/telematics"
)

// Samples are messages of one unit, one of each kind. Zero: the dialect has no filter for it.
type Samples struct {
	Unit                     telematics.Unit
	Installation             telematics.Installation // of the unit
	Answer, Report, Presence Line
}

// Line is one incoming MQTT message.
type Line struct{ Topic, Payload string }

var received = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// Contract tests that a dialect keeps the contract of telematics.Dialect, as subtests of t.
func Contract(t *testing.T, d telematics.Dialect, samples Samples) {
	for name, run := range map[string]func(*testing.T, telematics.Dialect, Samples){
		"ItsNameFitsIntoARecord":                 nameFits,
		"ItsFiltersBringItsMessages":             filtersBring,
		"ATopicNamesItsUnitWithoutAllocations":   topicNamesUnit,
		"AStrangeTopicIsAnError":                 strangeTopic,
		"ItReadsItsMessages":                     reads,
		"TheTimeOfAReportIsTheUnits":             datesReports,
		"WhatIsTooLargeIsAnError":                tooLarge,
		"GarbageDoesNotPanic":                    garbage,
		"ItsCommandsKeepTheLaws":                 commandsKeepTheLaws,
		"ItConfirmsWhatItPromises":               confirmsWhatItPromises,
		"ItRefusesAnInstallationThatIsNotItsOwn": strangeInstallation,
		"ItCarriesNothingThatItDoesNotHave":      carriesNothingElse,
		"WhoPromisesLessIsAskedOnlyWhenItIsHere": askedOnlyWhenHere,
		"ItsUnitsAreWatchedByOneWatcherEach":     watched,
	} {
		t.Run(name, func(t *testing.T) { run(t, d, samples) })
	}
}

func nameFits(t *testing.T, d telematics.Dialect, _ Samples) {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,31}$`).MatchString(string(d.Protocol())) {
		t.Errorf("protocol %q does not fit the constraint units_protocol_form", d.Protocol())
	}
}

// lines returns the samples that are not zero.
func lines(s Samples) []Line {
	return slices.DeleteFunc([]Line{s.Answer, s.Report, s.Presence}, func(l Line) bool { return l == Line{} })
}

func filtersBring(t *testing.T, d telematics.Dialect, s Samples) {
	f := d.Filters()
	bring := func(line Line, filters ...string) {
		if !anyMatches(filters, line.Topic) && (line != Line{} || strings.Join(filters, "") != "") {
			t.Errorf("filters %q do not bring %q", filters, line.Topic)
		}
	}
	bring(s.Answer, f.Answers)
	bring(s.Report, f.Reports...)
	bring(s.Presence, f.Presence)
}

// anyMatches reports whether one of the filters matches a topic.
func anyMatches(filters []string, topic string) bool {
	return slices.ContainsFunc(filters, func(filter string) bool { return matches(filter, topic) })
}

func topicNamesUnit(t *testing.T, d telematics.Dialect, s Samples) {
	for _, line := range lines(s) {
		unit, _, err := d.ParseTopic(line.Topic)
		if err != nil || unit != s.Unit {
			t.Errorf("ParseTopic(%q) = %q, %v, want %q", line.Topic, unit, err, s.Unit)
		}
		if allocs := testing.AllocsPerRun(100, func() { _, _, _ = d.ParseTopic(line.Topic) }); allocs > 0 {
			t.Errorf("ParseTopic(%q) allocates %v times", line.Topic, allocs)
		}
	}
}

func strangeTopic(t *testing.T, d telematics.Dialect, s Samples) {
	for _, topic := range []string{"", "/", "a/b/c/d/e/f/g", strings.Replace(s.Report.Topic, string(s.Unit), "",
		1), strings.Replace(s.Report.Topic, string(s.Unit), "+", 1)} {
		if unit, _, err := d.ParseTopic(topic); err == nil {
			t.Errorf("ParseTopic(%q) = %q, want an error", topic, unit)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { _, _, _ = d.ParseTopic("another/dialect/topic") }); allocs > 0 {
		t.Errorf("ParseTopic allocates %v times for a topic of another dialect", allocs)
	}
}

// message returns a line as the message that the broker passes to the dialect.
func message(t *testing.T, d telematics.Dialect, line Line) telematics.Message {
	t.Helper()
	unit, subject, err := d.ParseTopic(line.Topic)
	require.NoError(t, err)
	return telematics.Message{Dialect: d, Unit: unit, Subject: subject, Payload: []byte(line.Payload)}
}

func reads(t *testing.T, d telematics.Dialect, s Samples) {
	f := d.Filters()
	if f.Answers != "" {
		a, _, err := d.DecodeAnswer(message(t, d, s.Answer), received)
		correlated := promisesOf(d, s).Correlated
		if err != nil || (a.Command == telematics.NoCommand) == correlated || a.At.IsZero() ||
			a.State.IsOpen() && a.State != telematics.Received {
			t.Errorf("answer %+v, %v", a, err)
		}
	}
	if len(f.Reports) > 0 {
		r, _, err := d.DecodeReport(message(t, d, s.Report), received)
		if err != nil || len(r.Values) == 0 || r.At.IsZero() || r.At.After(received.Add(telematics.MaxAhead)) {
			t.Errorf("report %+v, %v", r, err)
		}
	}
	if f.Presence != "" {
		own := s
		own.Presence.Topic = d.PresenceOf(s.Unit)
		if message(t, d, own.Presence).Unit != s.Unit {
			t.Errorf("PresenceOf(%q) = %q, the topic of another unit", s.Unit, own.Presence.Topic)
		}
		p, err := d.DecodePresence(message(t, d, s.Presence), received)
		if err != nil ||
			!slices.Contains([]telematics.PresenceStatus{telematics.Online, telematics.Standby, telematics.Offline}, p.Status) {
			t.Errorf("presence %+v, %v", p, err)
		}
	}
}

// datesReports checks that a report with a time keeps it, whenever it arrives: with the time of its
// arrival, an earlier reading could confirm a later command. A report without a time is undated.
func datesReports(t *testing.T, d telematics.Dialect, s Samples) {
	if len(d.Filters().Reports) == 0 {
		return
	}
	m := message(t, d, s.Report)
	r, _, err := d.DecodeReport(m, received)
	require.NoError(t, err)
	for _, arrived := range []time.Time{r.At.Add(-400 * time.Millisecond), r.At.Add(time.Minute)} {
		if again, _, err := d.DecodeReport(m, arrived); err != nil || !again.Undated && !again.At.Equal(r.At) {
			t.Errorf(
				"the report that arrives at %v is of %v, and at %v of %v, %v: want the unit's time, or Undated",
				received, r.At, arrived, again.At, err,
			)
		}
	}
}

func tooLarge(t *testing.T, d telematics.Dialect, s Samples) {
	decodeAll(t, d, s, bytes.Repeat([]byte("1"), telematics.MaxMessage+1), func(what string, err error) {
		if err == nil {
			t.Errorf("%s of more than %d bytes was read", what, telematics.MaxMessage)
		}
	})
}

func garbage(t *testing.T, d telematics.Dialect, s Samples) {
	for _, payload := range []string{"", "\x00", "null", "{", "\xff\xfe", "[]", `{"at":1}`, "NaN", "-1e999"} {
		decodeAll(t, d, s, []byte(payload), func(string, error) {})
	}
}

func decodeAll(t *testing.T, d telematics.Dialect, s Samples, payload []byte, check func(what string, err error)) {
	t.Helper()
	said := func(line Line) telematics.Message {
		m := message(t, d, line)
		m.Payload = payload
		return m
	}
	f := d.Filters()
	if f.Answers != "" {
		_, _, err := d.DecodeAnswer(said(s.Answer), received)
		check("an answer", err)
	}
	if len(f.Reports) > 0 {
		_, _, err := d.DecodeReport(said(s.Report), received)
		check("a report", err)
	}
	if f.Presence != "" {
		_, err := d.DecodePresence(said(s.Presence), received)
		check("a presence", err)
	}
}

// signer counts what it signs.
type signer struct{ signed int }

func (s *signer) Sign(telematics.Claims) ([]byte, error) {
	s.signed++
	return []byte("signed"), nil
}

// actionsOf returns the actions that the dialect can encode for the unit of the samples.
func actionsOf(t *testing.T, d telematics.Dialect, s Samples) []telematics.Action {
	t.Helper()
	actions, err := d.Actions(s.Installation)
	if err != nil || len(actions) == 0 {
		t.Fatalf("actions of the installation %v: %v, %v", s.Installation, actions, err)
	}
	return actions
}

// promisesOf returns the promises that hold for every command to the unit of the samples.
func promisesOf(d telematics.Dialect, s Samples) telematics.Promises {
	promises, _ := telematics.Dialects{d}.Promises(here(d, s, "").Vehicle)
	return promises
}

func command(s Samples, d telematics.Dialect, a telematics.Action) telematics.Command {
	c := telematics.Command{
		ID: uuid.New(), Unit: s.Unit, Protocol: d.Protocol(), Installation: s.Installation, Action: a, Lane: a.Lane(), Seq: 1,
		Requested: received.Add(123 * time.Millisecond), Deadline: received.Add(10 * time.Second),
	}
	if a == telematics.AttentionSignal {
		c.Attention = &telematics.Attention{Signal: telematics.Both, Duration: telematics.DefaultPulse}
	}
	return c
}

// latestStart bounds how long after its request a command may be published to a unit that checks
// no expiry.
const latestStart = 5 * time.Second

func commandsKeepTheLaws(t *testing.T, d telematics.Dialect, s Samples) {
	f := d.Filters()
	for _, action := range actionsOf(t, d, s) {
		promises := d.Promises(s.Installation, action)
		c, key := command(s, d, action), &signer{}
		out, err := d.Encode(&c, key)
		again, _ := d.Encode(&c, &signer{})
		switch {
		case !reflect.DeepEqual(again, out):
			t.Errorf("%s is %q, and encoded again %q", action, out.Payload, again.Payload)
		case err != nil:
			t.Errorf("%s: %v", action, err)
		case out.Topic == "" || strings.ContainsAny(out.Topic, "+#") || len(out.Payload) == 0:
			t.Errorf("%s goes to %q with %d bytes", action, out.Topic, len(out.Payload))
		case matches(f.Answers, out.Topic) || anyMatches(f.Reports, out.Topic) || matches(f.Presence, out.Topic):
			t.Errorf("%s goes to %q, where its unit is heard", action, out.Topic)
		case !out.LeaveBefore.After(c.Requested) || out.LeaveBefore.After(c.Expires()):
			t.Errorf("%s may leave until %v, which is not between its request and its expiry", action, out.LeaveBefore)
		case out.EndOfSecond && !promises.Confirmed:
			t.Errorf("%s waits for the end of a second, and no report confirms it", action)
		case !promises.Expiring && out.LeaveBefore.After(c.Requested.Add(latestStart)):
			t.Errorf(
				"%s may leave for %v, and its unit checks no expiry: want %v at most", action,
				out.LeaveBefore.Sub(c.Requested), latestStart,
			)
		case !slices.Contains(strings.Split(out.Topic, "/"), string(s.Unit)):
			t.Errorf("%s goes to %q, which does not name unit %s: others could hear it", action, out.Topic, s.Unit)
		case out.QoS > 1 || out.QoS > 0 && !promises.Expiring:
			t.Errorf("%s leaves with QoS %d: a broker may keep it for a unit that checks no expiry", action, out.QoS)
		case promises.Signed != (key.signed == 1):
			t.Errorf("%s was signed %d times, promised: %t", action, key.signed, promises.Signed)
		}
	}
}

// confirmsWhatItPromises checks that a command with a confirmation promises Confirmed, and that the
// values fit the action and can be reported by a vehicle.
func confirmsWhatItPromises(t *testing.T, d telematics.Dialect, s Samples) {
	for _, action := range actionsOf(t, d, s) {
		confirmation := d.Confirmation(s.Installation, action)
		if len(confirmation) > 0 && !d.Promises(s.Installation, action).Confirmed {
			t.Errorf("%s is not confirmed, though a report of %v would confirm it", action, confirmation)
		}
		if locked, ok := confirmation[telematics.IsLocked]; ok && locked == action.Opens() {
			t.Errorf("%s is confirmed by %s = %v", action, telematics.IsLocked, locked)
		}
		for field, value := range confirmation {
			if value == nil || !field.Same(value, value) {
				t.Errorf("%s is confirmed by %s = %v, which no vehicle reports", action, field, value)
			}
		}
	}
}

func strangeInstallation(t *testing.T, d telematics.Dialect, _ Samples) {
	if actions, err := d.Actions(telematics.Installation{"no such setting": "1"}); err == nil {
		t.Errorf("an installation with a setting that is not there offers %v, want an error", actions)
	}
}

func carriesNothingElse(t *testing.T, d telematics.Dialect, s Samples) {
	for _, action := range append([]telematics.Action{telematics.ReportState, "fly"}, telematics.ControlActions...) {
		if slices.Contains(actionsOf(t, d, s), action) {
			continue
		}
		if refusal := (telematics.Dialects{d}).Refuse(new(here(d, s, action)), action, received); refusal == nil ||
			refusal.Code != telematics.CommandNotSupported {
			t.Errorf("%s: %v, want it to be refused", action, refusal)
		}
	}
}

func askedOnlyWhenHere(t *testing.T, d telematics.Dialect, s Samples) {
	for _, action := range actionsOf(t, d, s) {
		twin := here(d, s, action)
		if refusal := (telematics.Dialects{d}).Refuse(&twin, action, received); refusal != nil {
			t.Errorf("%s of a unit that is here: %v", action, refusal)
		}
		twin.Contact = telematics.Contact{} // no contact recorded, so the unit may be reachable
		if refusal := (telematics.Dialects{d}).Refuse(&twin, action, received); (refusal == nil) != d.Promises(s.Installation,
			action).Expiring {
			t.Errorf("%s of a unit that may be offline: %v, expiring: %t", action, refusal, d.Promises(s.Installation, action).Expiring)
		}
	}
}

// shortestWatch allows for one lost renewal.
const shortestWatch = 30 * time.Second

// watched checks that a Watchable dialect addresses one unit, and keeps watchers apart.
func watched(t *testing.T, d telematics.Dialect, s Samples) {
	w, ok := d.(telematics.Watchable)
	if !ok {
		return
	}
	on, off, other := w.Watch(s.Unit, "watcher-1", true), w.Watch(s.Unit, "watcher-1", false), w.Watch(s.Unit, "watcher-2", true)
	f := d.Filters()
	switch {
	case !reflect.DeepEqual(on, w.Watch(s.Unit, "watcher-1", true)):
		t.Errorf("watching is not the same each time")
	case w.WatchedFor() < shortestWatch:
		t.Errorf("a unit is watched for %s, want %s at least", w.WatchedFor(), shortestWatch)
	case on.Unit != s.Unit || off.Unit != s.Unit:
		t.Errorf("watching is for %q and %q, want unit %s", on.Unit, off.Unit, s.Unit)
	case on.Topic == other.Topic && bytes.Equal(on.Payload, other.Payload):
		t.Errorf("two watchers say the same, %q to %q: one would end the other's watch", on.Payload, on.Topic)
	case on.Topic == off.Topic && bytes.Equal(on.Payload, off.Payload):
		t.Errorf("the end of watching is its beginning, %q to %q", on.Payload, on.Topic)
	}
	for _, m := range []telematics.Transmission{on, off} {
		switch {
		case m.Topic == "" || strings.ContainsAny(m.Topic, "+#") || len(m.Payload) == 0:
			t.Errorf("watching goes to %q with %d bytes", m.Topic, len(m.Payload))
		case !slices.Contains(strings.Split(m.Topic, "/"), string(s.Unit)):
			t.Errorf("watching goes to %q, which does not name unit %s: others could hear it", m.Topic, s.Unit)
		case matches(f.Answers, m.Topic) || anyMatches(f.Reports, m.Topic) || matches(f.Presence, m.Topic):
			t.Errorf("watching goes to %q, where its unit is heard", m.Topic)
		case m.QoS > 0:
			t.Errorf("watching leaves with QoS %d: a broker may keep it for a unit that is offline", m.QoS)
		}
	}
}

// here returns a vehicle that supports the action and whose unit is online.
func here(d telematics.Dialect, s Samples, a telematics.Action) telematics.Twin {
	return telematics.Twin{
		Vehicle: telematics.Vehicle{Unit: s.Unit, Protocol: d.Protocol(), Installation: s.Installation, Actions: []telematics.Action{a}},
		Contact: telematics.Contact{Status: telematics.Online, LastSeen: received}, BestEffortUnlock: true,
	}
}

// matches reports whether an MQTT filter matches a topic (MQTT 3.1.1 §4.7).
func matches(filter, topic string) bool {
	levels := strings.Split(topic, "/")
	for i, level := range strings.Split(filter, "/") {
		switch {
		case level == "#":
			return true
		case i >= len(levels) || level != "+" && level != levels[i]:
			return false
		}
	}
	return strings.Count(filter, "/") == strings.Count(topic, "/")
}
