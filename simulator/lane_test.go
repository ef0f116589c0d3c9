package simulator

import (
	"testing"
	"time"

	"motorpool/telematics"
)

// [CMD-8]
func TestANewerCommandOfTheLaneWaitsForTheOlder(t *testing.T) {
	b := newBench(t)
	unlock, lock := b.command(telematics.Unlock), b.command(telematics.Lock)
	b.send(unlock)
	saysOnce(t, b.send(lock), telematics.Received, "", "")
	if b.starts() != 1 {
		t.Fatalf("%d commands at work in one lane", b.starts())
	}
	said := b.pass(effort)
	saysOnce(t, said, telematics.Succeeded, "", "")
	if said[0].Command != unlock.Command || b.starts() != 2 {
		t.Fatalf("said %+v after %d starts", said, b.starts())
	}
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
	if !b.body.Locked {
		t.Error("the newer command did not have the last word")
	}
}

func TestLanesDoNotWaitForOneAnother(t *testing.T) {
	b := newBench(t)
	b.send(b.command(telematics.Unlock))
	b.send(b.command(telematics.AttentionSignal))
	b.send(b.command(telematics.OpenTopCase))
	if b.starts() != 3 {
		t.Errorf("%d of 3 lanes at work", b.starts())
	}
}

// [CMD-8]
func TestExpiryIsCheckedAgainWhenTheWaitIsOver(t *testing.T) {
	b := newBench(t)
	b.effort = 4 * time.Second
	b.send(b.command(telematics.Unlock))
	impatient, patient := b.command(telematics.Lock), b.command(telematics.Unlock)
	impatient.Expires = b.now.Add(4 * time.Second)
	b.send(impatient)
	b.send(patient)
	said := b.pass(4 * time.Second)
	if len(said) != 2 {
		t.Fatalf("said %+v", said)
	}
	says(t, said[1], telematics.Rejected, telematics.TooLate, "")
	if b.starts() != 2 {
		t.Errorf("%d starts, want the first and the patient one", b.starts())
	}
	saysOnce(t, b.pass(4*time.Second), telematics.Succeeded, "", "")
	saysOnce(t, b.send(impatient), telematics.Rejected, telematics.TooLate, "")
}

func TestACarThatDroveOffMeanwhileIsNotOpened(t *testing.T) {
	b := newBench(t)
	b.send(b.command(telematics.EnableDriving))
	b.send(b.command(telematics.Unlock))
	b.body.SpeedKmh = 30
	said := b.pass(effort)
	says(t, said[1], telematics.Rejected, telematics.StateConflict, telematics.Moving)
	if !b.body.Locked {
		t.Error("a driving car was opened")
	}
}

func TestAClockLostMeanwhileStopsTheWaitingCommand(t *testing.T) {
	b := newBench(t)
	b.send(b.command(telematics.EnableDriving))
	b.send(b.command(telematics.Unlock))
	b.clock.Unset = true
	says(t, b.pass(effort)[1], telematics.Rejected, telematics.ClockUnset, "")
}

// [CMD-6]
func TestAReturnImmobilizesFirstAndLocksSecond(t *testing.T) {
	b := newBench(t)
	b.body.Locked = false
	b.send(b.command(telematics.LockAndDisableDriving))
	if b.body.Immobilizer != Engaged || b.body.Locked {
		t.Fatalf("first: immobilizer %s, locked %t", b.body.Immobilizer, b.body.Locked)
	}
	b.pass(effort)
	if !b.body.Locked {
		t.Fatal("second: not locked")
	}
	saysOnce(t, b.pass(effort), telematics.Succeeded, "", "")
}

// [CMD-6]
func TestAHalfDoneCommandFailsAndNamesTheHalf(t *testing.T) {
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
				t.Errorf("locked %t, immobilizer %s", b.body.Locked, b.body.Immobilizer)
			}
			values := got.Report.Values
			if values[telematics.IsLocked] != c.locked || values[telematics.OEMData].(map[string]any)["immobilizer"] != string(c.immobilizer) {
				t.Errorf("the report says %v", values)
			}
		})
	}
}

func TestACarThatIsDrivenOffBetweenTheHalvesStaysLocked(t *testing.T) {
	b := newBench(t)
	b.send(b.command(telematics.UnlockAndEnableDriving))
	b.body.SpeedKmh = 20
	saysOnce(t, b.pass(effort), telematics.Failed, "", "enable-driving")
	if !b.body.Locked {
		t.Error("a driving car was opened")
	}
}

func TestAFailingCarTriesAndNothingMoves(t *testing.T) {
	for _, action := range telematics.ControlActions {
		b := newBench(t)
		b.faults.Fail = Always
		before := b.body.clone()
		got := b.order(b.command(action))
		if got.State != telematics.Failed || got.Detail == "" || b.starts() != 1 {
			t.Errorf("%s: %+v after %d starts", action, got, b.starts())
		}
		if b.body.Locked != before.Locked || b.body.Immobilizer != before.Immobilizer || b.body.TopCase != before.TopCase {
			t.Errorf("%s: something moved", action)
		}
	}
}

// [CMD-7]
func TestWithTheIgnitionOnTheImmobilizerIsArmedAndActsAfterSwitchOff(t *testing.T) {
	for _, action := range []telematics.Action{telematics.DisableDriving, telematics.LockAndDisableDriving} {
		b := newBench(t)
		b.body.Ignition = true
		says(t, b.order(b.command(action)), telematics.Succeeded, "", "armed")
		if b.body.Immobilizer != Armed || !b.body.EngineRuns() {
			t.Fatalf("%s: immobilizer %s, engine runs %t", action, b.body.Immobilizer, b.body.EngineRuns())
		}
		b.boot() // a restart does not forget it
		b.body.Ignition, b.body.SpeedKmh = false, 8
		b.take(b.Watch(b.clock.Read(b.now)))
		if b.body.Immobilizer != Armed {
			t.Fatalf("%s: it acted on a rolling car", action)
		}
		b.body.SpeedKmh = 0
		b.take(b.Watch(b.clock.Read(b.now)))
		if b.body.Immobilizer != Engaged || b.log.Armed {
			t.Fatalf("%s: immobilizer %s after switch-off", action, b.body.Immobilizer)
		}
		b.body.Ignition = true
		if b.body.EngineRuns() {
			t.Errorf("%s: the engine starts", action)
		}
	}
}

func TestEnablingDisarms(t *testing.T) {
	b := newBench(t)
	b.body.Ignition = true
	b.order(b.command(telematics.DisableDriving))
	b.order(b.command(telematics.EnableDriving))
	b.boot()
	b.body.Ignition = false
	b.take(b.Watch(b.clock.Read(b.now)))
	if b.body.Immobilizer != Released {
		t.Errorf("immobilizer %s", b.body.Immobilizer)
	}
}

func TestAttention_AHornSoundsForItsDuration(t *testing.T) {
	b := newBench(t)
	c := b.command(telematics.AttentionSignal)
	c.Attention.Duration = 5 * time.Second
	b.send(c)
	if said := b.pass(5*time.Second - 1); len(said) != 0 {
		t.Errorf("said %+v while it sounds", said)
	}
	saysOnce(t, b.pass(1), telematics.Succeeded, "", "")
}
