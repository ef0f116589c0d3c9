package main

import (
	"fmt"
	"testing"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/telematics"
)

func TestHaltOutput_HaltIsStoredWhenTheProgramReportsIt(t *testing.T) {
	output := &haltOutput{}
	fmt.Fprint(output, "WARNING: this and that\nsto")
	if !output.stored.IsZero() {
		t.Error("the halt counts as stored before the program reported it")
	}
	fmt.Fprint(output, "red; it holds")
	at := output.stored
	fmt.Fprint(output, " everywhere within 3s\n")
	if at.IsZero() || !output.stored.Equal(at) {
		t.Errorf("stored at %v, then at %v", at, output.stored)
	}
}

func TestHalt_EachAgencyHasSilentCars(t *testing.T) {
	silent := map[telematics.AgencyID]int{}
	for car := 1; car <= 300; car++ {
		if profileOf(car).Name == "silent" {
			silent[agencyOf(car)]++
		}
	}
	for agency := range telematics.AgencyID(Agencies) {
		if silent[agency+1] == 0 {
			t.Errorf("agency %d has no silent car: %v", agency+1, silent)
		}
		if target := Halt(int(agency) + 1); haltedAgency(target) != agency+1 {
			t.Errorf("the target %q is not agency %d", target, agency+1)
		}
	}
	if haltedAgency(Halt(0)) != 0 {
		t.Error("the target of all agencies names an agency")
	}
}

// Only faults that delay messages excuse a late message: not those that lose messages, and not
// those of other servers.
func TestDelayed_ListsFaultsThatDelayMessagesOfEachInstance(t *testing.T) {
	r := &round{World: &world.World{}, uptime: newUptime(2)}
	for i := range 2 {
		r.Running = append(r.Running, &world.Instance{Name: Instance(i)})
	}
	begin := time.Unix(1767348000, 0)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	for i, struck := range []struct{ kind, target string }{
		{"instance frozen", Instance(0)},
		{"instance killed", Instance(0)},
		{"network slow", ServerLine(0, Mosquitto)},
		{"network cut", ServerLine(0, Mosquitto)},
		{"network delayed", ServerLine(0, Postgres)},
		{"network delayed", ServerLine(1, Mosquitto)},
		{"mosquitto frozen", Mosquitto},
		{"postgres frozen", Postgres},
	} {
		one := Fault{Kind: Find(struck.kind), Target: struck.target}
		r.injections.Add(injection{Fault: one, From: at(10 * i), To: at(10*i + 5)})
	}
	r.uptime.stall(at(100), at(102))

	delayed := r.delayed()
	for i, want := range map[int][]audit.Interval{
		0: {{From: at(100), To: at(102)}, {From: at(0), To: at(5)}, {From: at(20), To: at(25)}, {From: at(60), To: at(65)}},
		1: {{From: at(100), To: at(102)}, {From: at(50), To: at(55)}, {From: at(60), To: at(65)}},
	} {
		if fmt.Sprint(delayed[i]) != fmt.Sprint(want) {
			t.Errorf("instance %d was delayed during %v, want %v", i, delayed[i], want)
		}
	}
}
