package simulator

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// [CMD-8]
func TestLane_NewerCommandWaitsForTheOlder(t *testing.T) {
	b := newBench(t)
	unlock, lock := b.command(telematics.Unlock), b.command(telematics.Lock)
	b.send(unlock)
	saysOnce(t, b.send(lock), telematics.Received, "", "")
	if b.starts() != 1 {
		t.Fatalf("%d commands are executed at the same time in one lane, want 1", b.starts())
	}
	said := b.pass(effort)
	saysOnce(t, said, telematics.Succeeded, "", "")
	if said[0].Command != unlock.Command || b.starts() != 2 {
		t.Fatalf("answers %+v after %d starts", said, b.starts())
	}
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
	if !b.body.Locked {
		t.Error("the car is not locked, but the newer command locks it")
	}
}

func TestLane_LanesDoNotWaitForOneAnother(t *testing.T) {
	b := newBench(t)
	b.send(b.command(telematics.Unlock))
	b.send(b.command(telematics.AttentionSignal))
	b.send(b.command(telematics.OpenTopCase))
	if b.starts() != 3 {
		t.Errorf("commands of %d of 3 lanes started", b.starts())
	}
}

// [CMD-8]
func TestLane_ExpiryIsCheckedAgainAfterTheWait(t *testing.T) {
	b := newBench(t)
	b.effort = 4 * time.Second
	b.send(b.command(telematics.Unlock))
	impatient, patient := b.command(telematics.Lock), b.command(telematics.Unlock)
	impatient.Expires = b.now.Add(4 * time.Second)
	b.send(impatient)
	b.send(patient)
	said := b.pass(4 * time.Second)
	if len(said) != 2 {
		t.Fatalf("answers %+v, want 2", said)
	}
	says(t, said[1], telematics.Rejected, telematics.TooLate, "")
	if b.starts() != 2 {
		t.Errorf("%d starts, want the first command and the one with the longer limit", b.starts())
	}
	saysOnce(t, b.pass(4*time.Second), telematics.Succeeded, "", "")
	saysOnce(t, b.send(impatient), telematics.Rejected, telematics.TooLate, "")
}

func TestLane_StateAndClockAreCheckedAgainAfterTheWait(t *testing.T) {
	for _, c := range []struct {
		changes        func(*bench)
		reason, detail string
	}{
		{func(b *bench) { b.body.SpeedKmh = 30 }, telematics.StateConflict, telematics.Moving},
		{func(b *bench) { b.clock.Unset = true }, telematics.ClockUnset, ""},
	} {
		b := newBench(t)
		b.send(b.command(telematics.EnableDriving))
		b.send(b.command(telematics.Unlock))
		c.changes(b)
		says(t, b.pass(effort)[1], telematics.Rejected, c.reason, c.detail)
		assert.Equal(t, b.body.Locked, true, "locked")
	}
}

// [CMD-6]
func TestHandover_ReturnImmobilizesThenLocks(t *testing.T) {
	b := newBench(t)
	b.body.Locked = false
	b.send(b.command(telematics.LockAndDisableDriving))
	if b.body.Immobilizer != Engaged || b.body.Locked {
		t.Fatalf("after the first half: immobilizer %s, locked %t; want engaged, unlocked", b.body.Immobilizer, b.body.Locked)
	}
	b.pass(effort)
	if !b.body.Locked {
		t.Fatal("after the second half the car is not locked")
	}
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
}

// [CMD-6]
func TestHandover_FailedHalfIsNamed(t *testing.T) {
	for _, c := range []struct {
		action      telematics.Action
		jammed      Part
		detail      string
		locked      bool
		immobilizer Immobilizer
	}{
		{telematics.LockAndDisableDriving, DoorLock, "disable-driving", false, Engaged},
		{telematics.LockAndDisableDriving, ImmobilizerRelay, "immobilizer_fault", false, Released},
		{telematics.UnlockAndEnableDriving, DoorLock, "enable-driving", true, Released},
		{telematics.UnlockAndEnableDriving, ImmobilizerRelay, "immobilizer_fault", true, Engaged},
	} {
		t.Run(string(c.action)+" "+string(c.jammed), func(t *testing.T) {
			b := newBench(t)
			returning := c.action == telematics.LockAndDisableDriving
			b.body.Locked, b.body.Immobilizer = !returning, either(returning, Released, Engaged)
			b.faults.Jammed = []Part{c.jammed}
			got := b.order(b.command(c.action))
			says(t, got, telematics.Failed, "", c.detail)
			if b.body.Locked != c.locked || b.body.Immobilizer != c.immobilizer {
				t.Errorf("locked %t, immobilizer %s; want %t, %s", b.body.Locked, b.body.Immobilizer, c.locked, c.immobilizer)
			}
			values := got.Report.Values
			if values[telematics.IsLocked] != c.locked ||
				values[telematics.OEMData].(map[string]any)["immobilizer"] != string(c.immobilizer) {
				t.Errorf("the report has %v", values)
			}
		})
	}
}

func TestHandover_CarThatDroveOffBetweenTheHalvesStaysLocked(t *testing.T) {
	b := newBench(t)
	b.send(b.command(telematics.UnlockAndEnableDriving))
	b.body.SpeedKmh = 20
	saysOnce(t, b.pass(effort), telematics.Failed, "", "enable-driving")
	if !b.body.Locked {
		t.Error("the driving car was unlocked")
	}
}

func TestActuator_FailingCarTriesAndChangesNothing(t *testing.T) {
	for _, action := range telematics.ControlActions {
		b := newBench(t)
		b.faults.Fail = Always
		before := b.body.clone()
		got := b.order(b.command(action))
		if got.State != telematics.Failed || got.Detail == "" || b.starts() != 1 {
			t.Errorf("%s: answer %+v after %d starts, want failed after one", action, got, b.starts())
		}
		if b.body.Locked != before.Locked || b.body.Immobilizer != before.Immobilizer || b.body.TopCase != before.TopCase {
			t.Errorf("%s: the state of the car changed", action)
		}
	}
}

// [CMD-7]
func TestImmobilizer_ArmedWithTheIgnitionOnAndEngagedAfterSwitchOff(t *testing.T) {
	for _, action := range []telematics.Action{telematics.DisableDriving, telematics.LockAndDisableDriving} {
		b := newBench(t)
		b.body.Ignition = true
		says(t, b.order(b.command(action)), telematics.Succeeded, "", "armed")
		if b.body.Immobilizer != Armed || !b.body.EngineRuns() {
			t.Fatalf("%s: immobilizer %s, engine runs %t; want armed, running", action, b.body.Immobilizer, b.body.EngineRuns())
		}
		b.boot() // the immobilizer stays armed across a restart
		b.body.Ignition, b.body.SpeedKmh = false, 8
		b.take(b.Watch(b.clock.Read(b.now)))
		if b.body.Immobilizer != Armed {
			t.Fatalf("%s: the immobilizer engaged in a rolling car", action)
		}
		b.body.SpeedKmh = 0
		b.take(b.Watch(b.clock.Read(b.now)))
		if b.body.Immobilizer != Engaged || b.log.Armed {
			t.Fatalf("%s: immobilizer %s after switch-off, want engaged", action, b.body.Immobilizer)
		}
		b.body.Ignition = true
		if b.body.EngineRuns() {
			t.Errorf("%s: the engine starts despite the engaged immobilizer", action)
		}
	}
}

func TestImmobilizer_EnablingDisarms(t *testing.T) {
	b := newBench(t)
	b.body.Ignition = true
	b.order(b.command(telematics.DisableDriving))
	b.order(b.command(telematics.EnableDriving))
	b.boot()
	b.body.Ignition = false
	b.take(b.Watch(b.clock.Read(b.now)))
	assert.Equal(t, b.body.Immobilizer, Released, "immobilizer")
}

func TestAttention_HornSoundsForItsDuration(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.AttentionSignal)
	c.Attention.Duration = 5 * time.Second
	b.send(c)
	assert.EqualSlices(t, b.pass(5*time.Second-1), nil, "answers before the end of the sound")
	saysOnce(t, b.pass(1), telematics.Succeeded, "", "")
}
