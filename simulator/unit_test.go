package simulator

import (
	"errors"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestACommandIsReceivedThenDone(t *testing.T) {
	b := newBench(t)
	b.body.Locked = false
	c := b.command(telematics.Lock)
	saysOnce(t, b.send(c), telematics.Received, "", "")
	said := b.pass(effort)
	saysOnce(t, said, telematics.Succeeded, "", "")
	if got := said[0].Report.Values; len(got) != 1 || got[telematics.IsLocked] != true { // [ACK-2]
		t.Errorf("reports %v, want is_locked alone", got)
	}
}

// [CMD-5]
func TestACommandUnderWorkIsReceivedAgainAndDoneOnce(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.Unlock)
	b.send(c)
	saysOnce(t, b.send(c), telematics.Received, "", "")
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
	saysOnce(t, b.send(c), telematics.Succeeded, "", "")
	if b.starts() != 1 {
		t.Errorf("started %d times", b.starts())
	}
}

// A refusal is an answer like any other: the caller got the answer that nothing happened. [CMD-5]
func TestARefusedCommandStaysRefusedWhenItComesAgain(t *testing.T) {
	b := newBench(t)
	b.clock.Unset = true
	c := b.command(telematics.Unlock)
	says(t, b.order(c), telematics.Rejected, telematics.ClockUnset, "")
	b.now = epoch
	b.clock.Unset = false
	saysOnce(t, b.send(c), telematics.Rejected, telematics.ClockUnset, "")
	if b.starts() != 0 {
		t.Error("it was executed")
	}
}

func TestSixtyFourCommandsAreRememberedAcrossARestart(t *testing.T) {
	b := newBench(t)
	var sent []telematics.Claims
	for range remembered {
		c := b.command(telematics.ReportState)
		sent = append(sent, c)
		b.order(c)
	}
	b.boot()
	for i, c := range sent {
		if got := b.send(c); len(got) != 1 || got[0].State != telematics.Succeeded {
			t.Fatalf("command %d: %+v", i, got)
		}
	}
	if b.starts() != remembered {
		t.Errorf("%d starts of %d commands", b.starts(), remembered)
	}
}

func TestAForgottenCommandIsStillNotDoneTwice(t *testing.T) {
	b := newBench(t)
	first := b.command(telematics.Unlock)
	b.order(first)
	for range remembered {
		b.order(b.command(telematics.Lock))
	}
	b.now = first.IssuedAt // let not even its expiry protect us
	saysOnce(t, b.send(first), telematics.Rejected, telematics.OutOfOrder, "")
}

// [CMD-5]
func TestARestartAnswersWhatWasUnfinishedAsInterruptedWithAReport(t *testing.T) {
	b := newBench(t)
	atWork, waiting := b.command(telematics.LockAndDisableDriving), b.command(telematics.Unlock)
	b.body.Locked = false
	b.send(atWork)
	b.send(waiting)
	said := b.boot()
	if len(said) != 2 {
		t.Fatalf("said %+v", said)
	}
	for _, a := range said {
		says(t, a, telematics.Failed, telematics.Interrupted, "")
		if a.Report == nil || a.Report.Values[telematics.IsLocked] != false {
			t.Errorf("report %+v", a.Report)
		}
	}
	if b.body.Immobilizer != Engaged {
		t.Error("the first half was done before the restart")
	}
	if more := b.pass(time.Minute); len(more) != 0 {
		t.Errorf("went on with %+v", more)
	}
	saysOnce(t, b.send(atWork), telematics.Failed, telematics.Interrupted, "")
	says(t, b.order(b.command(telematics.Unlock)), telematics.Succeeded, "", "")
}

func TestNothingMovesBeforeTheMemoryHasIt(t *testing.T) {
	b := newBench(t)
	broken := errors.New("worn out")
	b.memory = memoryFunc(func(Log) error {
		if !b.body.Locked {
			t.Error("it moved first")
		}
		return broken
	})
	c := b.command(telematics.Unlock)
	saysOnce(t, b.send(c), telematics.Failed, "", "memory_fault")
	if !b.body.Locked || b.starts() != 0 || !errors.Is(b.err, broken) {
		t.Errorf("locked %t, %d starts, %v", b.body.Locked, b.starts(), b.err)
	}
}

func TestTheMemoryHasTheCommandWhenItMoves(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.Unlock)
	var saved []Log
	b.memory = memoryFunc(func(l Log) error { saved = append(saved, l.clone()); return nil })
	b.send(c)
	known := saved[0].find(c.Command)
	if known == nil || known.Answer != nil || saved[0].Seq[telematics.AccessLane] != c.Seq {
		t.Errorf("saved first: %+v", saved[0])
	}
}

type memoryFunc func(Log) error

func (memoryFunc) Load() (Log, error) { return Log{}.clone(), nil }
func (f memoryFunc) Save(l Log) error { return f(l) }

func TestAForgeryIsAnsweredOnlyWhereItNamesACommandThatWeDoNotKnow(t *testing.T) {
	b := newBench(t)
	known, unknown := b.command(telematics.Unlock), b.command(telematics.Unlock)
	b.send(known)
	foreign := newKey(t)
	if said := b.deliver(sign(t, foreign, known)); len(said) != 0 {
		t.Errorf("a forged copy made the unit say %+v", said)
	}
	saysOnce(t, b.deliver(sign(t, foreign, unknown)), telematics.Rejected, telematics.BadSignature, "")
	for _, garbage := range []string{"", "a.b.c", "...", "a.e30.c", "{}", string(make([]byte, telematics.MaxMessage+1))} {
		if said := b.deliver([]byte(garbage)); len(said) != 0 {
			t.Errorf("%.10q made the unit say %+v", garbage, said)
		}
	}
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
	// The forgery leaves no trace: the real command with that id is executed.
	says(t, b.order(unknown), telematics.Succeeded, "", "")
}

func TestASilentUnitHearsAndDoesNothing(t *testing.T) {
	b := newBench(t)
	b.faults.Silent = true
	said := append(b.send(b.command(telematics.Unlock)), b.pass(time.Minute)...)
	if len(said) != 0 || !b.body.Locked || len(b.log.answers()) != 0 {
		t.Errorf("said %+v, locked %t", said, b.body.Locked)
	}
	if count(b.events, CommandReceived) != 1 || len(b.events) != 1 {
		t.Errorf("recorded %+v", b.events)
	}
}

func TestARefusingUnitLosesItsClockForThatCommand(t *testing.T) {
	b := newBench(t)
	b.faults.Refuse = Always
	says(t, b.order(b.command(telematics.Unlock)), telematics.Rejected, telematics.ClockUnset, "")
}

// [TEL-3]
func TestReportsRepeatTheLastEightFinalAnswers(t *testing.T) {
	b := newBench(t)
	var sent []telematics.Claims
	for range repeated + 2 {
		c := b.command(telematics.ReportState)
		sent = append(sent, c)
		b.order(c)
	}
	b.send(b.command(telematics.Unlock)) // at work: not final
	answers := b.log.answers()
	if len(answers) != repeated {
		t.Fatalf("%d answers", len(answers))
	}
	for i, a := range answers {
		if a.Command != sent[i+2].Command || !a.State.IsFinal() {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
}

func TestReportStateAnswersWithTheWholeReport(t *testing.T) {
	b := newBench(t)
	b.actions = nil // every unit can
	b.body.SpeedKmh = 120
	got := b.order(b.command(telematics.ReportState))
	says(t, got, telematics.Succeeded, "", "")
	if want := b.body.Report(b.now); len(got.Report.Values) != len(want.Values) {
		t.Errorf("%d fields, want %d", len(got.Report.Values), len(want.Values))
	}
}
