package simulator

import (
	"errors"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// [CMD-5]
func TestUnit_RepeatedRunningCommandIsReceivedAgainAndDoneOnce(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.Unlock)
	b.send(c)
	saysOnce(t, b.send(c), telematics.Received, "", "")
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
	saysOnce(t, b.send(c), telematics.Succeeded, "", "")
	if b.starts() != 1 {
		t.Errorf("started %d times, want once", b.starts())
	}
}

// A refusal is final: the caller knows that nothing happened. [CMD-5]
func TestUnit_RefusedCommandStaysRefusedWhenRepeated(t *testing.T) {
	b := newBench(t)
	b.clock.Unset = true
	c := b.command(telematics.Unlock)
	says(t, b.order(c), telematics.Rejected, telematics.ClockUnset, "")
	b.now = epoch
	b.clock.Unset = false
	saysOnce(t, b.send(c), telematics.Rejected, telematics.ClockUnset, "")
	if b.starts() != 0 {
		t.Error("a refused command was executed")
	}
}

func TestUnit_Remembers64CommandsAcrossARestart(t *testing.T) {
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

func TestUnit_AForgottenCommandIsStillNotDoneTwice(t *testing.T) {
	b := newBench(t)
	first := b.command(telematics.Unlock)
	b.order(first)
	for range remembered {
		b.order(b.command(telematics.Lock))
	}
	b.now = first.IssuedAt // the expiry does not protect here
	saysOnce(t, b.send(first), telematics.Rejected, telematics.OutOfOrder, "")
}

// [CMD-5]
func TestUnit_RestartAnswersInterruptedWithAReport(t *testing.T) {
	b := newBench(t)
	atWork, waiting := b.command(telematics.LockAndDisableDriving), b.command(telematics.Unlock)
	b.body.Locked = false
	b.send(atWork)
	b.send(waiting)
	said := b.boot()
	if len(said) != 2 {
		t.Fatalf("answers %+v, want 2", said)
	}
	for _, a := range said {
		says(t, a, telematics.Failed, telematics.Interrupted, "")
		if a.Report == nil || a.Report.Values[telematics.IsLocked] != false {
			t.Errorf("report %+v, want is_locked false", a.Report)
		}
	}
	if b.body.Immobilizer != Engaged {
		t.Error("the first half was done before the restart")
	}
	assert.EqualSlices(t, b.pass(time.Minute), nil, "a minute later it answered")
	saysOnce(t, b.send(atWork), telematics.Failed, telematics.Interrupted, "")
	says(t, b.order(b.command(telematics.Unlock)), telematics.Succeeded, "", "")
}

func TestUnit_SavesBeforeItActs(t *testing.T) {
	b := newBench(t)
	broken := errors.New("worn out")
	c := b.command(telematics.Unlock)
	saves := 0
	b.memory = memoryFunc(func(l Log) error {
		known := l.find(c.Command)
		if saves++; !b.body.Locked || saves == 1 && (known == nil || known.Answer != nil || l.Seq[telematics.AccessLane] != c.Seq) {
			t.Errorf("saved %+v, locked %t; want the unanswered command with its seq, before the lock moves", l, b.body.Locked)
		}
		return broken
	})
	saysOnce(t, b.send(c), telematics.Failed, "", "memory_fault")
	if !b.body.Locked || b.starts() != 0 || !errors.Is(b.err, broken) {
		t.Errorf("locked %t, %d starts, %v; want locked, none and the error of the memory", b.body.Locked, b.starts(), b.err)
	}
}

type memoryFunc func(Log) error

func (memoryFunc) Load() (Log, error) { return Log{}.clone(), nil }
func (f memoryFunc) Save(l Log) error { return f(l) }

func TestUnit_AnswersAForgeryOnlyWithAnUnknownCommand(t *testing.T) {
	b := newBench(t)
	known, unknown := b.command(telematics.Unlock), b.command(telematics.Unlock)
	b.send(known)
	foreign := newKey(t)
	assert.EqualSlices(t, b.deliver(sign(t, foreign, known)), nil, "the answers to a forged copy")
	saysOnce(t, b.deliver(sign(t, foreign, unknown)), telematics.Rejected, telematics.BadSignature, "")
	for _, garbage := range []string{"", "a.b.c", "...", "a.e30.c", "{}", string(make([]byte, telematics.MaxMessage+1))} {
		assert.EqualSlices(t, b.deliver([]byte(garbage)), nil, "the answers to %.10q", garbage)
	}
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
	// The forgery is not remembered: the genuine command with that id is executed.
	says(t, b.order(unknown), telematics.Succeeded, "", "")
}

func TestUnit_SilentUnitOnlyReceives(t *testing.T) {
	b := newBench(t)
	b.faults.Silent = true
	said := append(b.send(b.command(telematics.Unlock)), b.pass(time.Minute)...)
	if len(said) != 0 || !b.body.Locked || len(b.log.answers()) != 0 {
		t.Errorf("answers %+v, locked %t; want none, locked", said, b.body.Locked)
	}
	if count(b.events, CommandReceived) != 1 || len(b.events) != 1 {
		t.Errorf("recorded %+v, want only the reception", b.events)
	}
}

func TestUnit_RefusingUnitLosesItsClockForThatCommand(t *testing.T) {
	b := newBench(t)
	b.faults.Refuse = Always
	says(t, b.order(b.command(telematics.Unlock)), telematics.Rejected, telematics.ClockUnset, "")
}

// [TEL-3]
func TestUnit_ReportsRepeatTheLastEightFinalAnswers(t *testing.T) {
	b := newBench(t)
	var sent []telematics.Claims
	for range repeated + 2 {
		c := b.command(telematics.ReportState)
		sent = append(sent, c)
		b.order(c)
	}
	b.send(b.command(telematics.Unlock)) // running, so its answer is not final
	answers := b.log.answers()
	if len(answers) != repeated {
		t.Fatalf("%d answers, want 8", len(answers))
	}
	for i, a := range answers {
		if a.Command != sent[i+2].Command || !a.State.IsFinal() {
			t.Errorf("answer %d: %+v", i, a)
		}
	}
}

func TestUnit_ReportStateAnswersWithTheFullReport(t *testing.T) {
	b := newBench(t)
	b.actions = nil // every unit supports report_state
	b.body.SpeedKmh = 120
	got := b.order(b.command(telematics.ReportState))
	says(t, got, telematics.Succeeded, "", "")
	if want := b.body.Report(b.now); len(got.Report.Values) != len(want.Values) {
		t.Errorf("the report has %d fields, want %d", len(got.Report.Values), len(want.Values))
	}
}
