package audit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

// others is a world of units of other protocols in which everything that their laws allow has
// happened once.
type others struct {
	Evidence
	heard map[telematics.Unit]int64
}

const (
	leaf   telematics.VehicleID = iota + 11 // OVMS, of an agency that allows best-effort unlock
	zoe                                     // OVMS, of one that denies it
	van                                     // Teltonika, allowed
	hearse                                  // Teltonika, denied
)

func othersWorld() Evidence {
	w := &others{heard: map[telematics.Unit]int64{}}
	nissan := telematics.Installation{"type": "NL", "pin": "4711"}
	outputs := telematics.Installation{
		"lock": "output 1 pulse 1s", "unlock": "output 2 pulse 1s",
		"disable-driving": "output 3 on", "enable-driving": "output 3 off", "lock-signal": "can",
	}
	w.Others = map[telematics.VehicleID]Installed{
		leaf: {"leaf", ovms.Protocol, nissan, true}, zoe: {"zoe", ovms.Protocol, nissan, false},
		van: {"van", teltonika.Protocol, outputs, true}, hearse: {"hearse", teltonika.Protocol, outputs, false},
	}
	w.Up = []Interval{{From: noon.Add(-time.Hour)}}
	for _, u := range []telematics.Unit{"leaf", "zoe", "van", "hearse"} {
		w.turn(u, noon.Add(-time.Hour), false)
	}
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	w.add(1, leaf, telematics.Lock, minute(1), telematics.Succeeded)
	w.add(2, leaf, telematics.Unlock, minute(2), telematics.Succeeded)
	w.add(3, zoe, telematics.Lock, minute(3), telematics.Succeeded)
	w.add(4, van, telematics.Lock, minute(1), telematics.Succeeded)
	w.add(5, van, telematics.EnableDriving, minute(2), telematics.Succeeded)
	w.add(6, hearse, telematics.DisableDriving, minute(3), telematics.Unknown)
	w.add(7, leaf, telematics.Lock, minute(8), telematics.Unknown)
	w.add(8, van, telematics.Lock, minute(12), telematics.Failed)
	w.add(9, zoe, telematics.Lock, minute(12), telematics.Failed)
	for _, v := range []telematics.VehicleID{zoe, hearse} {
		w.Calls = append(w.Calls, Call{
			RequestID: "denied-" + string(w.Others[v].Unit),
			Vehicle:   v, Action: telematics.Unlock, Start: minute(4), End: minute(4).Add(ms(5)), Status: 409,
			Code: telematics.BestEffortIsDenied, Outcome: telematics.NotExecuted,
		})
		w.AuditLog = append(
			w.AuditLog,
			LogEntry{ID: 100 + int64(v), At: minute(4), Vehicle: v, RequestID: "denied-" + string(w.Others[v].Unit)},
		)
	}
	return w.Evidence
}

// add adds a command. A unit that receives it starts it and answers, and is locked or unlocked; an
// unknown command is lost; a failed one is refused by the unit.
func (w *others) add(n int, vehicle telematics.VehicleID, a telematics.Action, at time.Time, end telematics.State) {
	of := w.Others[vehicle]
	lane := a.Lane()
	if !of.promises(a).Correlated {
		lane = telematics.UnitLane
	}
	r := Row{
		ID: id(n), Vehicle: vehicle, Unit: of.Unit, Action: a, Lane: lane, Seq: int64(n), Attempts: 1, RequestID: "other-" + id(n).String(),
		Requested: at, SentAt: at.Add(ms(20)), Deadline: at.Add(6 * time.Second), State: end, Completed: at.Add(ms(400)),
	}
	c := Call{
		RequestID: r.RequestID, Key: "key-" + r.RequestID, Instance: 1, Vehicle: vehicle, Action: a,
		Start: at.Add(-ms(3)), End: r.Completed.Add(ms(3)), Status: 200, Command: r.ID, Outcome: end.Outcome(),
	}
	line := map[telematics.Action]string{
		telematics.Lock: "setdigout 1 1", telematics.Unlock: "setdigout ?1 ? 1",
		telematics.EnableDriving: "setdigout ??0", telematics.DisableDriving: "setdigout ??1",
	}[a]
	named := r.ID
	m := Message{At: at.Add(ms(22)), Unit: of.Unit, Command: named, Payload: "lock"}
	if of.Protocol == teltonika.Protocol {
		named = telematics.NoCommand
		m.Command, m.Payload = named, `{"CMD":"`+line+`"}`
	}
	w.Published = append(w.Published, m)
	event := func(kind simulator.Kind, after int, detail string) {
		w.Flights = append(w.Flights, simulator.Event{
			Kind: kind, Unit: of.Unit, Command: named, Action: a, Seq: w.heard[of.Unit], Detail: detail,
			Clock: at.Add(ms(after)), True: at.Add(ms(after)),
		})
	}
	if end == telematics.Unknown {
		r.Completed = at.Add(6*time.Second + ms(5))
	} else {
		r.ReceivedAt = at.Add(ms(110))
		w.heard[of.Unit]++
		event(simulator.CommandReceived, 50, line)
		if end == telematics.Succeeded {
			event(simulator.CommandStarted, 60, line)
			event(simulator.CommandEnded, 300, line)
			if a == telematics.Lock || a == telematics.Unlock {
				w.turn(of.Unit, at.Add(ms(300)), a == telematics.Lock)
			}
		}
		event(simulator.CommandAnswered, 100, "DOUT1:ON")
	}
	w.AuditLog = append(w.AuditLog, LogEntry{
		ID: int64(n), At: r.Completed, Vehicle: vehicle, Action: telematics.CommandActivity(a), Outcome: end.Outcome(),
		Command: r.ID, RequestID: r.RequestID,
	})
	w.Commands, w.Calls = append(w.Commands, r), append(w.Calls, c)
}

func (w *others) turn(u telematics.Unit, at time.Time, locked bool) {
	w.Flights = append(w.Flights, simulator.Event{Kind: simulator.Turned, Unit: u, Detail: simulator.TurnOf(locked), True: at, Clock: at})
}

// of returns the first event of a unit and kind.
func (w *others) of(u telematics.Unit, kind simulator.Kind) *simulator.Event {
	i := slices.IndexFunc(w.Flights, func(e simulator.Event) bool { return e.Unit == u && e.Kind == kind })
	return &w.Flights[i]
}

func TestOthers_HealthyWorldHasNoViolation(t *testing.T) {
	r := Check(othersWorld())
	for _, v := range r.Violations {
		t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
	}
	// The next command has the same payload and follows immediately.
	w := &others{Evidence: othersWorld(), heard: map[telematics.Unit]int64{"van": 20}}
	w.add(10, van, telematics.EnableDriving, noon.Add(20*time.Minute), telematics.Succeeded)
	w.add(11, van, telematics.EnableDriving, noon.Add(20*time.Minute).Add(ms(150)), telematics.Succeeded)
	w.row(10).Completed, w.row(10).ReceivedAt = noon.Add(20*time.Minute).Add(ms(120)), noon.Add(20*time.Minute).Add(ms(110))
	for _, v := range Check(w.Evidence).Violations {
		t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
	}
	for _, p := range []telematics.Protocol{ovms.Protocol, teltonika.Protocol} {
		for _, law := range othersLaws {
			if n := r.Checked[lawOf(p, law.name)]; n == 0 && law.name != "a halt holds" &&
				(law.name != "one command at a time" || p == teltonika.Protocol) {
				t.Errorf("%s: %q was never checked", p, law.name)
			}
		}
	}
	e := othersWorld()
	assert.Equal(t, Untried(e), "", "why it proves nothing")
	e.Calls = nil
	assert.Equal(t, Untried(e), "of ovms units 3 starts, 3 confirmed commands, 0 denied", "why it proves nothing")
}

func TestOthers_EachViolationIsFound(t *testing.T) {
	for _, c := range []struct {
		breach, law, what string
		commit            func(*others)
	}{
		{"an answer locked of a car that is not", "ovms: told succeeded: it happened", "never so between", func(w *others) {
			w.Flights = slices.DeleteFunc(w.Flights, func(e simulator.Event) bool {
				return e.Unit == "zoe" && e.Kind == simulator.Turned && e.Detail == simulator.TurnedLocked
			})
		}},
		{"a car that locks after the answer", "ovms: told succeeded: it happened", "never so between", func(w *others) {
			w.row(3).Completed = w.row(3).Requested.Add(ms(200))
		}},
		{"a car that was locked and unlocked before", "teltonika: told succeeded: it happened", "never so between", func(w *others) {
			w.turn("van", w.row(4).Requested.Add(ms(10)), false)
			w.Flights = slices.DeleteFunc(w.Flights, func(e simulator.Event) bool {
				return e.Unit == "van" && e.Kind == simulator.Turned && e.Detail == simulator.TurnedLocked
			})
		}},
		{"succeeded without an answer", "teltonika: told succeeded: it happened", "did not answer so", func(w *others) {
			w.Flights = slices.DeleteFunc(w.Flights, func(e simulator.Event) bool {
				return e.Action == telematics.EnableDriving && e.Kind == simulator.CommandAnswered
			})
		}},
		{"a response with the command of another vehicle", "ovms: told succeeded: it happened", "does not say that", func(w *others) {
			w.Calls[0].Command = id(3)
		}},
		{"refused, but executed", "ovms: told not executed: it did not", "but the car started", func(w *others) {
			w.Calls[0].Outcome = telematics.NotExecuted
		}},
		{"expired, but executed", "teltonika: told not executed: it did not", "the record says expired", func(w *others) {
			w.row(4).State, w.row(4).ReceivedAt = telematics.Expired, time.Time{}
		}},
		{"contradicted, although it is true", "teltonika: told contradicted: it was otherwise", "never otherwise", func(w *others) {
			w.row(4).State, w.row(4).Contradicted = telematics.Unknown, true
		}},
		{"an answer to another command", "teltonika: no answer to another command", "had not answered it", func(w *others) {
			w.row(6).State, w.row(6).ReceivedAt = telematics.Received, w.row(6).Requested.Add(time.Second)
		}},
		{"an answer before its command", "ovms: no answer to another command", "had not answered it", func(w *others) {
			w.row(2).ReceivedAt = w.row(1).Completed
		}},
		{"a late start", "ovms: late at most as promised", "started 1m40s late", func(w *others) {
			e := w.of("leaf", simulator.CommandStarted)
			e.True = w.row(1).SentAt.Add(100 * time.Second)
		}},
		{"a late start of a unit that names no command", "teltonika: late at most as promised", "started 1m40s late", func(w *others) {
			w.of("van", simulator.CommandStarted).True = w.row(4).SentAt.Add(100 * time.Second)
		}},
		{"a repetition that must not be executed", "v1: once where promised", "lock started 2 times", func(w *others) {
			promising := w.Others[leaf]
			promising.Protocol = telematics.DefaultProtocol
			w.Others[leaf] = promising
			again := *w.of("leaf", simulator.CommandStarted)
			again.Seq, again.True = 9, again.True.Add(time.Second)
			w.Flights = append(w.Flights, again)
		}},
		{"a key with two commands", "ovms: one order, one command", "2 commands of the key", func(w *others) {
			w.Calls[1].Key = w.Calls[0].Key
		}},
		{
			"the next command too early", "teltonika: one command at a time",
			"before an answer to the last command was ruled out", func(w *others) {
				w.row(4).ReceivedAt = time.Time{}
			},
		},
		{"a command without a row", "teltonika: nothing forgotten", "not on record", func(w *others) {
			w.Commands = slices.DeleteFunc(w.Commands, func(r Row) bool { return r.ID == id(4) })
		}},
		{"a retained message", "ovms: nothing forgotten", "is retained", func(w *others) { w.Published[0].Retained = true }},
		{"a forgotten command", "ovms: nothing forgotten", "not on record", func(w *others) {
			w.Commands = slices.DeleteFunc(w.Commands, func(r Row) bool { return r.ID == id(3) })
		}},
		{"a denied command", "ovms: what an agency denies is not sent", "became a command", func(w *others) {
			w.row(3).Action = telematics.Unlock
		}},
		{"a denied call", "teltonika: what an agency denies is not sent", "was accepted", func(w *others) {
			w.Calls[len(w.Calls)-1].Command = id(6)
		}},
		{"a denied start", "teltonika: what an agency denies is not sent", "started unlock", func(w *others) {
			e := *w.of("van", simulator.CommandStarted)
			e.Unit, e.Action, e.Seq = "hearse", telematics.Unlock, 9
			w.Flights = append(w.Flights, e)
		}},
		{"an allowed call is denied", "ovms: what an agency denies is not sent", "though it may be sent", func(w *others) {
			w.Calls[1].Code = telematics.BestEffortIsDenied
		}},
		{"a limited speed", "ovms: no command does harm", "speed limited", func(w *others) {
			e := *w.of("leaf", simulator.CommandStarted)
			e.Kind, e.Detail = simulator.Harmed, "speed limited to 47 km/h"
			w.Flights = append(w.Flights, e)
		}},
		{"an open command", "teltonika: final in time", "still open", func(w *others) { w.row(6).State = telematics.Sent }},
		{"a halted unit gets a command", "teltonika: a halt holds", "came", func(w *others) {
			w.Agencies = map[telematics.Unit]telematics.AgencyID{"van": 1}
			w.Halts = []Halt{{Agency: 1, Written: noon.Add(90 * time.Second), Lifting: noon.Add(5 * time.Minute)}}
		}},
	} {
		w := &others{Evidence: othersWorld(), heard: map[telematics.Unit]int64{}}
		c.commit(w)
		r := Check(w.Evidence)
		isIt := func(v verdict.Violation) bool { return strings.Contains(v.What, c.what) }
		if found := r.Of(c.law); len(found) == 0 || !slices.ContainsFunc(found, isIt) {
			t.Errorf("%s: the law %q has no such violation: %v", c.breach, c.law, r.Violations)
		}
	}
}

func TestOthers_IntrudersAndRepeatedAnswersAreNoViolation(t *testing.T) {
	w := &others{Evidence: othersWorld(), heard: map[telematics.Unit]int64{"van": 20, "leaf": 20}}
	again := *w.of("leaf", simulator.CommandStarted)
	again.Seq, again.True = 21, noon.Add(10*time.Minute) // replayed long afterwards
	forged := *w.of("van", simulator.CommandStarted)
	forged.Seq, forged.True, forged.Action = 21, noon.Add(10*time.Minute), telematics.Unlock
	w.Flights = append(w.Flights, again)
	w.Intrusions = []Intrusion{{"leaf", noon.Add(10*time.Minute - time.Second)}, {"van", noon.Add(10*time.Minute - time.Second)}}
	// A command was not sent, and the caller has got that answer; Postgres has not.
	w.add(10, van, telematics.Unlock, noon.Add(9*time.Minute), telematics.Unknown)
	w.row(10).SentAt, w.row(10).Attempts = time.Time{}, 0
	w.Calls[len(w.Calls)-1].Outcome, w.Calls[len(w.Calls)-1].Status = telematics.NotExecuted, 503
	w.Published = w.Published[:len(w.Published)-1]
	w.Flights = append(w.Flights, simulator.Event{
		Kind: simulator.CommandReceived, Unit: "van", Seq: 21, Detail: "setdigout ?1 ? 1", True: forged.True, Clock: forged.True,
	}, forged)
	// A repeated answer is assigned to a lost command.
	w.add(11, van, telematics.DisableDriving, noon.Add(13*time.Minute), telematics.Unknown)
	w.row(11).ReceivedAt = w.row(11).Requested.Add(time.Second)
	w.Redelivered = []Interval{{From: w.row(11).Requested.Add(-time.Second), To: w.row(11).Requested.Add(time.Minute)}}
	for _, v := range Check(w.Evidence).Violations {
		t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
	}
}

// Two instances may have written when a command succeeded. The vehicle was locked before by the
// clock of only one of them.
func TestOthers_LateReportIsSettledWhileAnotherClockIsAhead(t *testing.T) {
	w := &others{Evidence: othersWorld(), heard: map[telematics.Unit]int64{}}
	lock := w.row(4)
	for i := range w.Flights {
		if e := &w.Flights[i]; e.Unit == "van" && e.Kind == simulator.Turned && e.Detail == simulator.TurnedLocked {
			e.True = lock.Requested.Add(40 * time.Second)
		}
	}
	lock.Completed, lock.Late = lock.Requested.Add(41*time.Second), true
	ahead := ClockFault{From: lock.Requested.Add(5 * time.Second), To: lock.Requested.Add(15 * time.Second), Ahead: 30 * time.Second}
	w.Clocks = map[int][]ClockFault{2: {ahead}}
	const law = "teltonika: told succeeded: it happened"
	for _, v := range Check(w.Evidence).Of(law) {
		t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
	}
	for _, leaps := range [][]ClockFault{nil, {ahead}} { // a leap is that of all clocks
		w.Clocks[All] = leaps
		if lock.Completed = lock.Requested.Add(41 * time.Second); leaps == nil {
			lock.Completed = lock.Requested.Add(39 * time.Second)
		}
		if len(Check(w.Evidence).Of(law)) == 0 {
			t.Errorf("leaps %v: %q allows a vehicle that is locked after its command succeeded by every clock", leaps, law)
		}
	}
}

// An instance whose clock is ahead dates a late answer with it. A time that another instance may
// have written stays as it is.
func TestCorrected_AnswersDatedAfterAllThatWasSeen(t *testing.T) {
	began := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	e := Evidence{
		Commands: []Row{
			{ID: telematics.CommandID{1}, RequestID: "1", Requested: at(0), SentAt: at(1), ReceivedAt: at(285), Completed: at(7)},
			{ID: telematics.CommandID{2}, RequestID: "2", Requested: at(20), SentAt: at(21), ReceivedAt: at(40), Completed: at(41)},
		},
		Calls:   []Call{{RequestID: "1", Start: at(0), End: at(7)}, {RequestID: "2", Start: at(20), End: at(41)}},
		Flights: []simulator.Event{{True: at(90)}},
		Clocks: map[int][]ClockFault{
			1: {{From: at(2), To: at(12), Ahead: 280 * time.Second}},
			2: {{From: at(21), To: at(35), Ahead: 10 * time.Second}},
		},
	}
	rows, _, _ := e.corrected()
	for i, want := range []time.Time{at(5), at(40)} {
		if got := rows[i].ReceivedAt; !got.Equal(want) {
			t.Errorf("command %d was answered at %v, want %v", i+1, got, want)
		}
	}
}
