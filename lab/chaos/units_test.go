package main

import (
	"context"
	"testing"

	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

func TestMakeup_HasEachKindInTheSharesOfTheFlags(t *testing.T) {
	m := flags{Vehicles: 300, OVMS: 10, Teltonika: 10}.makeup()
	if m != mixed || m.protocol(240) != telematics.DefaultProtocol || m.protocol(241) != ovms.Protocol ||
		m.protocol(271) != teltonika.Protocol {
		t.Errorf("makeup %+v", m)
	}
	if f := (flags{Vehicles: 60, OVMS: 10, Teltonika: 10, Instances: 3, Callers: 1, Duration: minDuration}); f.complete() == nil {
		t.Error("48 cars of protocol v1 were not refused")
	}
}

// For both other protocols and each agency, there are vehicles of every kind that the laws
// distinguish.
func TestMakeup_OtherUnitsAreOfAllKinds(t *testing.T) {
	type kind struct {
		protocol             telematics.Protocol
		confirmed, mayUnlock bool
	}
	counts := map[kind]int{}
	for vehicle, of := range mixed.others() {
		if _, err := dialectOf(of.Protocol).Actions(of.Installation); err != nil {
			t.Errorf("vehicle %d: %v", vehicle, err)
		}
		counts[kind{of.Protocol, dialects.Spoken.Assurance(of.Protocol, of.Installation, telematics.Lock).Confirmed, of.BestEffortUnlock}]++
	}
	for _, p := range []telematics.Protocol{ovms.Protocol, teltonika.Protocol} {
		for _, confirmed := range []bool{false, true} {
			for _, may := range []bool{false, true} {
				if n := counts[kind{p, confirmed, may}]; n < 2 {
					t.Errorf("%d vehicles of protocol %s, lock confirmed %t, unlock allowed %t", n, p, confirmed, may)
				}
			}
		}
	}
}

// atPhase is a unit whose car is in a phase of its day.
type atPhase struct {
	simulated
	phase simulator.Phase
}

func (a atPhase) Phase(context.Context) simulator.Phase { return a.phase }

func TestInGarage_ByTheDayOfTheCar(t *testing.T) {
	for _, phase := range simulator.Phases {
		if in := inGarage(device{simulated: atPhase{phase: phase}}); in != (phase == simulator.Away) {
			t.Errorf("%s: in the garage %t", phase, in)
		}
	}
}

func dialectOf(p telematics.Protocol) telematics.Dialect {
	d, _ := dialects.Spoken.Find(p)
	return d
}
