package simulator

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// A command in which everything is wrong is refused for the first reason of the list. With that
// corrected, it is refused for the next one: this fixes the order as well as the reasons. [CMD-4]
func TestCheck_RefusesInTheOrderOfTheProtocol(t *testing.T) {
	b := newBench(t)
	b.order(b.command(telematics.Lock)) // uses seq 1 of the lane
	unknown := newKey(t)
	b.clock.Unset = true
	b.actions = []telematics.Action{}
	b.body.SpeedKmh = 50

	c := b.command(telematics.DisableDriving)
	c.Unit, c.Seq = "another", 1
	c.IssuedAt, c.Expires = b.now.Add(-2*time.Minute), b.now.Add(-time.Minute)
	signer := unknown

	for _, step := range []struct {
		reason, detail string
		mend           func()
	}{
		{telematics.BadSignature, "", func() { signer = b.key }},
		{telematics.WrongAudience, "", func() { c.Unit = aUnit }},
		{telematics.ClockUnset, "", func() { b.clock.Unset, b.clock.Skew = false, -time.Hour }},
		{telematics.ClockBehind, "", func() { b.clock.Skew = 0 }},
		{telematics.TTLTooLong, "", func() { c.IssuedAt = c.Expires.Add(-35 * time.Second) }},
		{telematics.TooLate, "", func() { c.IssuedAt, c.Expires = b.now, b.now.Add(10*time.Second) }},
		{telematics.OutOfOrder, "", func() { c.Seq = 2 }},
		{telematics.Unsupported, "", func() { b.actions = AllActions }},
		{telematics.StateConflict, telematics.Moving, func() { b.body.SpeedKmh = 0 }},
	} {
		c.Command = b.command(c.Action).Command // a refused command is remembered
		b.floor = floor{}                       // and a command for this unit teaches it the time
		saysOnce(t, b.deliver(sign(t, signer, c)), telematics.Rejected, step.reason, step.detail)
		step.mend()
	}
	if b.starts() != 1 {
		t.Fatalf("%d commands started, want only the first", b.starts())
	}
	c.Command = b.command(c.Action).Command
	says(t, b.order(c), telematics.Succeeded, "", "")
}

// The unit looks up the command id directly after the audience. [CMD-4] [CMD-5]
func TestCheck_SeenCommandRepeatsItsAnswerDespiteOtherFaults(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.Lock)
	first := b.order(c)
	b.now = b.now.Add(time.Hour) // expired
	b.clock.Unset = true
	b.actions = nil
	got := b.send(c)
	saysOnce(t, got, telematics.Succeeded, "", "")
	if string(v1.EncodeAnswer(got[0])) != string(v1.EncodeAnswer(first)) {
		t.Errorf("repeated answer %+v, want %+v", got[0], first)
	}
}

func TestCheck_RetainedCommandIsDroppedSilently(t *testing.T) {
	b := newBench(t)
	e := b.Receive(b.clock.Read(b.now), sign(t, b.key, b.command(telematics.Unlock)), true)
	if len(e.Answers)+len(e.Events)+len(e.Waits) != 0 || !b.body.Locked {
		t.Errorf("effects %+v, want none", e)
	}
}

func TestCheck_AllowsClockErrorsOfFiveSeconds(t *testing.T) {
	for _, c := range []struct {
		name   string
		skew   time.Duration
		age    time.Duration // of the command, which expires after ten seconds
		reason string
	}{
		{"five seconds behind", -5 * time.Second, 0, ""},
		{"more than five seconds behind", -5001 * time.Millisecond, 0, telematics.ClockBehind},
		{"just before the expiry", 0, 9999 * time.Millisecond, ""},
		{"at the expiry", 0, 10 * time.Second, telematics.TooLate},
		{"ahead, so that the command seems expired", 10 * time.Second, 0, telematics.TooLate},
		{"behind, so that the command seems valid", -4 * time.Second, 13 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			command := b.command(telematics.Lock)
			b.clock.Skew = c.skew
			b.now = b.now.Add(c.age)
			state := telematics.Received
			if c.reason != "" {
				state = telematics.Rejected
			}
			saysOnce(t, b.send(command), state, c.reason, "")
			for _, e := range b.events {
				assert.Equal(t, e.Clock.Sub(e.True), c.skew, "the recorded error of the clock")
			}
		})
	}
}

func TestCheck_AllowsALifetimeOf35Seconds(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.Lock)
	c.Expires = c.IssuedAt.Add(35 * time.Second)
	saysOnce(t, b.send(c), telematics.Received, "", "")
}

func TestCheck_SequencesOfLanesAreIndependent(t *testing.T) {
	b := newBench(t)
	high := b.command(telematics.Lock)
	high.Seq = 1000
	b.order(high)
	says(t, b.order(b.command(telematics.AttentionSignal)), telematics.Succeeded, "", "")
	equal := b.command(telematics.Unlock)
	equal.Seq = 1000
	says(t, b.order(equal), telematics.Rejected, telematics.OutOfOrder, "")
}

// Only accepted commands count: a refused command does not bar an older one. [CMD-4]
func TestCheck_RefusedCommandDoesNotCountForTheSequence(t *testing.T) {
	b := newBench(t)
	b.body.SpeedKmh = 50
	newer := b.command(telematics.Unlock)
	newer.Seq = 10
	says(t, b.order(newer), telematics.Rejected, telematics.StateConflict, telematics.Moving)
	says(t, b.order(b.command(telematics.Lock)), telematics.Succeeded, "", "")
}

func TestCheck_RefusesByTheStateOfTheCar(t *testing.T) {
	standing := func(*Body) {}
	crawling := func(b *Body) { b.SpeedKmh = 5 }
	driving := func(b *Body) { b.SpeedKmh = 5.1 }
	blind := func(b *Body) { b.SpeedUnknown = true }
	trunkOpen := func(b *Body) { b.Opened = []telematics.Field{telematics.DoorTrunk} }
	windowOpen := func(b *Body) { b.Opened = []telematics.Field{telematics.WindowFrontLeft} }

	immobilizing := []telematics.Action{telematics.DisableDriving, telematics.LockAndDisableDriving}
	opening := []telematics.Action{telematics.Unlock, telematics.UnlockAndEnableDriving, telematics.OpenTopCase}
	locking := []telematics.Action{telematics.Lock, telematics.LockAndDisableDriving}
	harmless := []telematics.Action{telematics.EnableDriving, telematics.AttentionSignal, telematics.ReportState}
	for _, c := range []struct {
		name    string
		state   func(*Body)
		actions []telematics.Action
		detail  string
	}{
		{"standing", standing, append(telematics.ControlActions, telematics.ReportState), ""},
		{"crawling", crawling, telematics.ControlActions, ""},
		{"driving, immobilizing", driving, immobilizing, telematics.Moving},
		{"driving, opening", driving, opening, telematics.Moving},
		{"driving, harmless", driving, append(harmless, telematics.Lock), ""},
		{"speed unknown, immobilizing", blind, immobilizing, telematics.Moving},
		{"speed unknown, opening", blind, opening, ""},
		{"trunk open, locking", trunkOpen, locking, telematics.DoorOpen},
		{"trunk open, other", trunkOpen, append(harmless, telematics.Unlock, telematics.DisableDriving), ""},
		{"window open", windowOpen, locking, ""},
	} {
		for _, action := range c.actions {
			t.Run(c.name+" "+string(action), func(t *testing.T) {
				b := newBench(t)
				c.state(b.body)
				got := b.order(b.command(action))
				if c.detail == "" {
					says(t, got, telematics.Succeeded, "", "")
					return
				}
				says(t, got, telematics.Rejected, telematics.StateConflict, c.detail)
				if got.Report == nil || len(got.Report.Values) == 0 {
					t.Error("the refusal has no report of the state")
				}
			})
		}
	}
}
