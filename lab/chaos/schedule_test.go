package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func aPlan(seed uint64, duration time.Duration) Plan {
	return Plan{Seed: seed, Duration: duration, Instances: 3, Vehicles: 300}
}

func printed(faults []Fault) []string {
	var lines []string
	for _, f := range faults {
		lines = append(lines, fmt.Sprint(f, f.Cars))
	}
	return lines
}

func TestSchedule_DependsOnTheSeed(t *testing.T) {
	first, again := printed(aPlan(7, 3*time.Minute).Schedule()), printed(aPlan(7, 3*time.Minute).Schedule())
	if !slices.Equal(first, again) {
		t.Errorf("one seed gave two schedules:\n%v\n%v", first, again)
	}
	if slices.Equal(first, printed(aPlan(8, 3*time.Minute).Schedule())) {
		t.Error("two seeds gave one schedule")
	}
}

func TestSchedule_ShortestRoundHasEveryKind(t *testing.T) {
	for _, duration := range []time.Duration{30 * time.Second, 45 * time.Second, 200 * time.Second} {
		for seed := range uint64(200) {
			struck := map[string]bool{}
			for _, f := range aPlan(seed, duration).Schedule() {
				struck[f.Kind.Name] = true
			}
			for _, k := range Scheduled() {
				if !struck[k.Name] {
					t.Errorf("seed %d, %v: the fault %q never occurs", seed, duration, k.Name)
				}
			}
		}
	}
}

func TestSchedule_LongRoundHasEveryTarget(t *testing.T) {
	struck := map[string]bool{}
	for _, f := range aPlan(1, 10*time.Minute).Schedule() {
		struck[f.Target] = true
	}
	for _, target := range append(lineNames(3), Mosquitto, Redis, Postgres, Instance(0), Instance(1), Instance(2),
		Halt(0), Halt(1), Halt(2)) {
		if !struck[target] {
			t.Errorf("no fault has the target %s", target)
		}
	}
}

func TestSchedule_FaultsAreBoundedAndOneTargetHasOneAtATime(t *testing.T) {
	for seed := range uint64(50) {
		p := aPlan(seed, 200*time.Second)
		until := map[string]time.Duration{}
		for _, f := range p.Schedule() {
			if f.For <= 0 || f.For > maxLength || f.At+f.For > p.Duration {
				t.Errorf("seed %d: a fault out of bounds: %v", seed, f)
			}
			if f.For < f.Kind.least {
				t.Errorf("seed %d: a fault that is too short: %v", seed, f)
			}
			if f.At < until[f.Target] {
				t.Errorf("seed %d: the previous fault of %s has not ended: %v", seed, f.Target, f)
			}
			until[f.Target] = f.At + f.For
			if f.Kind.cars != nil && len(f.Cars) == 0 {
				t.Errorf("seed %d: a fault without cars: %v", seed, f)
			}
		}
	}
}

func TestSchedule_NoCarBothRestartsAndLosesTheTime(t *testing.T) {
	lost, restarted := map[int]bool{}, map[int]bool{}
	for seed := range uint64(20) {
		for _, f := range aPlan(seed, 200*time.Second).Schedule() {
			for _, car := range f.Cars {
				lost[car] = lost[car] || f.Kind.Clock
				restarted[car] = restarted[car] || f.Kind.Name == Restarted
			}
		}
	}
	for car := range lost {
		if lost[car] && restarted[car] {
			t.Errorf("car %d does both, restart and lose the time", car)
		}
	}
}

func TestSchedule_WaveEndsWithAPause(t *testing.T) {
	p := aPlan(3, 200*time.Second)
	for _, w := range p.waves() {
		for _, f := range p.Schedule() {
			if f.At < w.to && f.At+f.For > w.to && f.At >= w.from {
				t.Errorf("a fault lasts into the pause after %v: %v", w.to, f)
			}
		}
	}
}
