package simulator

import (
	"time"

	"motorpool/telematics"
)

// Part is what an action moves.
type Part string

const (
	DoorLock         Part = "door_lock"
	ImmobilizerRelay Part = "immobilizer"
	HornAndLights    Part = "horn_and_lights"
	TopCaseLatch     Part = "top_case"
)

// step is one movement of one part. An action has one, a combined action two.
type step struct {
	action telematics.Action // the simple action of this step
	part   Part              // empty: nothing moves
	takes  time.Duration
}

// steps returns the movements of an action, in their order. A return engages the immobilizer first,
// so that a car which cannot be locked cannot be driven away either [CMD-6]; a hand-over releases
// it first, so that a car which cannot be driven stays locked.
func steps(a telematics.Action, attention *telematics.Attention, effort time.Duration) []step {
	switch a {
	case telematics.LockAndDisableDriving:
		return []step{
			{action: telematics.DisableDriving, part: ImmobilizerRelay, takes: effort},
			{action: telematics.Lock, part: DoorLock, takes: effort},
		}
	case telematics.UnlockAndEnableDriving:
		return []step{
			{action: telematics.EnableDriving, part: ImmobilizerRelay, takes: effort},
			{action: telematics.Unlock, part: DoorLock, takes: effort},
		}
	case telematics.AttentionSignal:
		return []step{{action: a, part: HornAndLights, takes: attention.Duration}}
	}
	return []step{{action: a, part: parts[a], takes: effort}}
}

var parts = map[telematics.Action]Part{
	telematics.Lock:           DoorLock,
	telematics.Unlock:         DoorLock,
	telematics.EnableDriving:  ImmobilizerRelay,
	telematics.DisableDriving: ImmobilizerRelay,
	telematics.OpenTopCase:    TopCaseLatch,
}

// changes lists the fields that an action may change: what its final answer reports [ACK-2].
func changes(a telematics.Action) []telematics.Field {
	switch a {
	case telematics.Lock, telematics.Unlock:
		return []telematics.Field{telematics.IsLocked}
	case telematics.EnableDriving, telematics.DisableDriving:
		return []telematics.Field{telematics.Ignition, telematics.OEMData}
	case telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving:
		return []telematics.Field{telematics.IsLocked, telematics.Ignition, telematics.OEMData}
	case telematics.OpenTopCase:
		return []telematics.Field{telematics.OEMData}
	}
	return nil
}

// evidence lists the fields that show why the vehicle's state forbids a command.
func evidence(detail string) []telematics.Field {
	if detail == telematics.DoorOpen {
		return doors
	}
	return []telematics.Field{telematics.SpeedKmh}
}
