package main

import (
	"fmt"
	"testing"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/service"
	"motorpool/telematics"
)

func TestAHaltIsWrittenDownWhenTheProgramSaysSo(t *testing.T) {
	heard := &writtenDown{}
	fmt.Fprint(heard, "WARNING: this and that\nwritten ")
	if !heard.at.IsZero() {
		t.Error("before it was said")
	}
	fmt.Fprint(heard, "down; it holds")
	at := heard.at
	fmt.Fprint(heard, " everywhere within 3s\n")
	if at.IsZero() || !heard.at.Equal(at) {
		t.Errorf("at %v, then %v", at, heard.at)
	}
}

func TestEachAgencyHasCarsThatAreOrderedBeforeAHalt(t *testing.T) {
	silent := map[telematics.AgencyID]int{}
	for car := 1; car <= 300; car++ {
		if profileOf(car).Name == "silent" {
			silent[agencyOf(car)]++
		}
	}
	for agency := range telematics.AgencyID(agencies) {
		if silent[agency+1] == 0 {
			t.Errorf("agency %d has none: %v", agency+1, silent)
		}
		if target := haltOf(agency + 1); agencyNamed(target) != agency+1 {
			t.Errorf("%q is not agency %d", target, agency+1)
		}
	}
	if agencyNamed(haltOf(0)) != 0 {
		t.Error("all is not all")
	}
}

// Only what keeps messages for later excuses one that comes late: not what loses them, and not what strikes elsewhere.
func TestWhatHoldsMessagesUpIsKnownOfEachInstance(t *testing.T) {
	w := &world{uptime: newUptime(2)}
	for i := range 2 {
		w.instances = append(w.instances, &instance{Instance: &service.Instance{Name: instanceName(i)}})
	}
	begin := time.Unix(1767348000, 0)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	kindOf := func(name string) *kind {
		for i := range kinds {
			if kinds[i].name == name {
				return &kinds[i]
			}
		}
		t.Fatalf("there is no kind %q", name)
		return nil
	}
	var strikes []strike
	for i, struck := range []struct{ kind, target string }{
		{"instance frozen", instanceName(0)},
		{"instance killed", instanceName(0)},
		{"network slow", lineOf(0, mosquittoServer)},
		{"network cut", lineOf(0, mosquittoServer)},
		{"network delayed", lineOf(0, postgresServer)},
		{"network delayed", lineOf(1, mosquittoServer)},
		{"mosquitto frozen", mosquittoServer},
		{"postgres frozen", postgresServer},
	} {
		strikes = append(strikes, strike{fault: fault{Kind: kindOf(struck.kind), Target: struck.target}, From: at(10 * i), To: at(10*i + 5)})
	}
	w.uptime.stall(at(100), at(102))

	delayed := w.delayed(strikes)
	for i, want := range map[int][]audit.Interval{
		0: {{From: at(100), To: at(102)}, {From: at(0), To: at(5)}, {From: at(20), To: at(25)}, {From: at(60), To: at(65)}},
		1: {{From: at(100), To: at(102)}, {From: at(50), To: at(55)}, {From: at(60), To: at(65)}},
	} {
		if fmt.Sprint(delayed[i]) != fmt.Sprint(want) {
			t.Errorf("instance %d: %v, want %v", i, delayed[i], want)
		}
	}
}
