package teltonika

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// AVL ids.
const (
	ignitionID = 239
	movementID = 240
	doorsID    = 90
	towingID   = 246
	closedID   = 662
)

// doorBits are those of element 90.
var doorBits = map[telematics.Field]int{
	telematics.DoorFrontLeft: 0x100, telematics.DoorFrontRight: 0x200, telematics.DoorRearLeft: 0x400,
	telematics.DoorRearRight: 0x800, telematics.DoorTrunk: 0x2000,
}

func (u *Unit) state() state {
	if !u.Deaf() {
		u.adapter = u.Car
	}
	s := state{ignition: u.Car.Ignition, moves: u.Car.SpeedKmh > 0, locked: u.adapter.Locked}
	for door, bit := range doorBits {
		if slices.Contains(u.adapter.Opened, door) {
			s.doors |= bit
		}
	}
	return s
}

// observe makes a record if the state has changed.
func (u *Unit) observe() {
	if u.Car.Locked != u.turned {
		u.recordTurn()
	}
	switch now := u.state(); {
	case now.ignition != u.seen.ignition:
		u.record(ignitionID)
	case now.moves != u.seen.moves:
		u.record(movementID)
	case u.config.Wiring.CAN && now.locked != u.seen.locked:
		u.record(closedID)
	case u.config.Wiring.CAN && now.doors != u.seen.doors:
		u.record(doorsID)
	}
}

// recordTurn records whether the vehicle is locked now.
func (u *Unit) recordTurn() {
	u.turned = u.Car.Locked
	u.note(simulator.Turned, "", order{line: simulator.TurnOf(u.turned)})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// record keeps a record of the present state for the connection; event is the element that caused
// it, or 0.
func (u *Unit) record(event int) {
	now := time.Now()
	u.seen, u.recorded = u.state(), now
	b := &u.Car
	seconds := now.Truncate(u.Scaled(time.Second)) // as a unit counts
	r := map[string]any{
		"ts": seconds.UnixMilli(), "pr": bit(event != 0), "evt": event, "alt": 519, "239": bit(b.Ignition),
		"240": bit(u.seen.moves), "21": 4, "66": int(b.OnboardV * 1000), "16": int(b.MileageKm * 1000),
		"80": bit(u.seen.moves), "200": 0, "67": 4110, "68": 0, "206": 30, "241": 26201,
		"latlng": fmt.Sprintf("%.7f,%.7f", b.Latitude, b.Longitude),
		"ang":    int(b.Heading), "sat": 11, "sp": int(b.SpeedKmh), "24": int(b.SpeedKmh), "69": 1,
	}
	if event == towingID {
		r["246"] = 1
	}
	if u.Blind() { // the last position is repeated
		r["ang"], r["sat"], r["sp"], r["24"], r["69"] = 0, 0, 0, 0, 2
	}
	if u.config.Wiring.CAN {
		b := &u.adapter
		r["662"], r["90"], r["81"], r["87"] = bit(b.Locked), u.seen.doors, int(b.SpeedKmh), int(b.MileageKm*1000)
		r["653"], r["30"], r["281"] = bit(b.ParkBrake), len(b.DTCs), strings.Join(b.DTCs, ",")
		if b.Powertrain == telematics.Electric {
			r["152"] = int(b.EnergyPercent)
		} else {
			r["89"] = int(b.EnergyPercent)
		}
	}
	payload, err := json.Marshal(map[string]any{"state": map[string]any{"reported": r}})
	if err != nil { // never for these types
		u.config.Logger.Error("record not encoded", "unit", u.config.Unit, "err", err)
		return
	}
	u.kept = append(u.kept, payload)
	u.kept = u.kept[max(0, len(u.kept)-maxKept):]
	u.flush()
}

// flush sends the kept records, oldest first, until the connection accepts no more.
func (u *Unit) flush() {
	for len(u.kept) > 0 && u.publish(u.kept[0]) {
		u.kept = u.kept[1:]
	}
}
