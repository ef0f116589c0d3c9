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
	return []step{{action: a, part: effects[a].part, takes: effort}}
}

// effects are those of each action but a combined one: what it moves, how, and the fields that it
// may change, which its final answer reports [ACK-2].
var effects = map[telematics.Action]struct {
	part    Part
	move    func(*Body)
	changes []telematics.Field
}{
	telematics.Lock:           {DoorLock, func(b *Body) { b.Locked = true }, []telematics.Field{telematics.IsLocked}},
	telematics.Unlock:         {DoorLock, func(b *Body) { b.Locked = false }, []telematics.Field{telematics.IsLocked}},
	telematics.EnableDriving:  {ImmobilizerRelay, (*Body).release, []telematics.Field{telematics.Ignition, telematics.OEMData}},
	telematics.DisableDriving: {ImmobilizerRelay, (*Body).immobilize, []telematics.Field{telematics.Ignition, telematics.OEMData}},
	telematics.OpenTopCase:    {TopCaseLatch, func(b *Body) { b.TopCase = true }, []telematics.Field{telematics.OEMData}},
}

// changes lists the fields that the steps of an action may change.
func changes(a telematics.Action) (fields []telematics.Field) {
	for _, s := range steps(a, &telematics.Attention{}, 0) {
		fields = append(fields, effects[s.action].changes...)
	}
	return fields
}

// evidence lists the fields that show why the vehicle's state forbids a command.
func evidence(detail string) []telematics.Field {
	if detail == telematics.DoorOpen {
		return doors
	}
	return []telematics.Field{telematics.SpeedKmh}
}
