package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func aPlan(seed uint64, duration time.Duration) plan {
	return plan{Seed: seed, Duration: duration, Instances: 3, Vehicles: 300}
}

func printed(faults []fault) []string {
	var lines []string
	for _, f := range faults {
		lines = append(lines, fmt.Sprint(f, f.Cars))
	}
	return lines
}

func TestASeedDrawsTheSameScheduleEachTimeAndAnotherOneAnother(t *testing.T) {
	first, again := printed(aPlan(7, 3*time.Minute).schedule()), printed(aPlan(7, 3*time.Minute).schedule())
	if !slices.Equal(first, again) {
		t.Errorf("one seed, two schedules:\n%v\n%v", first, again)
	}
	if slices.Equal(first, printed(aPlan(8, 3*time.Minute).schedule())) {
		t.Error("two seeds, one schedule")
	}
}

func TestEveryKindOfFaultStrikesEvenInTheShortestRound(t *testing.T) {
	for _, duration := range []time.Duration{shortest, 45 * time.Second, 200 * time.Second} {
		for seed := range uint64(200) {
			struck := map[string]bool{}
			for _, f := range aPlan(seed, duration).schedule() {
				struck[f.Kind.name] = true
			}
			for _, k := range kinds {
				if !struck[k.name] {
					t.Errorf("seed %d, %v: %q never strikes", seed, duration, k.name)
				}
			}
		}
	}
}

func TestALongRoundStrikesEveryTarget(t *testing.T) {
	struck := map[string]bool{}
	for _, f := range aPlan(1, 10*time.Minute).schedule() {
		struck[f.Target] = true
	}
	for _, target := range append(lineNames(3), mosquittoServer, redisServer, postgresServer, instanceName(0), instanceName(1), instanceName(2),
		haltOf(0), haltOf(1), haltOf(2)) {
		if !struck[target] {
			t.Errorf("nothing ever strikes %s", target)
		}
	}
}

func TestFaultsAreBoundedAndOneTargetHasOneAtATime(t *testing.T) {
	for seed := range uint64(50) {
		p := aPlan(seed, 200*time.Second)
		until := map[string]time.Duration{}
		for _, f := range p.schedule() {
			if f.For <= 0 || f.For > maxLength || f.At+f.For > p.Duration {
				t.Errorf("seed %d: out of bounds: %v", seed, f)
			}
			if f.For < f.Kind.least {
				t.Errorf("seed %d: too short: %v", seed, f)
			}
			if f.At < until[f.Target] {
				t.Errorf("seed %d: %s is still struck: %v", seed, f.Target, f)
			}
			until[f.Target] = f.At + f.For
			if f.Kind.cars != nil && len(f.Cars) == 0 {
				t.Errorf("seed %d: strikes no car: %v", seed, f)
			}
		}
	}
}

func TestNoCarBothRestartsAndLosesTheTime(t *testing.T) {
	lost, restarted := map[int]bool{}, map[int]bool{}
	for seed := range uint64(20) {
		for _, f := range aPlan(seed, 200*time.Second).schedule() {
			for _, car := range f.Cars {
				lost[car] = lost[car] || f.Kind.skews
				restarted[car] = restarted[car] || f.Kind.name == "cars restarted"
			}
		}
	}
	for car := range lost {
		if lost[car] && restarted[car] {
			t.Errorf("car %d does both", car)
		}
	}
}

func TestAWaveEndsInACalm(t *testing.T) {
	p := aPlan(3, 200*time.Second)
	for _, w := range p.waves() {
		for _, f := range p.schedule() {
			if f.At < w.to && f.At+f.For > w.to && f.At >= w.from {
				t.Errorf("lasts into the calm after %v: %v", w.to, f)
			}
		}
	}
}
