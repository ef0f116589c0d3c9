package simulator

import (
	"slices"
	"testing"
	"time"
)

func TestDay_CarDrivesUsesEnergyChargesAndSleeps(t *testing.T) {
	b := ElectricCar(munich)
	b.Locked, b.EnergyPercent = true, 80
	d, rng := NewDay(0), Random(1, "OV-1")
	var met []Phase
	var drained, charged, keyed bool
	towed := 0
	for range 24 * 60 * 2 {
		before := b
		if d.Pass(&b, 30*time.Second, rng) {
			towed++
		}
		if !slices.Contains(met, d.Phase()) {
			met = append(met, d.Phase())
		}
		drained = drained || d.Phase() == Driving && b.EnergyPercent < before.EnergyPercent && b.MileageKm > before.MileageKm
		charged = charged || d.Phase() == Charging && b.EnergyPercent > before.EnergyPercent
		keyed = keyed || before.Locked && !b.Locked && d.Phase() == Driving
		if d.Phase() != Driving && (b.SpeedKmh != 0 || b.Ignition) {
			t.Fatalf("in the phase %s the speed is %v km/h, want 0 with the ignition off", d.Phase(), b.SpeedKmh)
		}
	}
	if len(met) != len(Phases) || !drained || !charged || !keyed || towed != 1 || !b.Locked {
		t.Errorf(
			"phases %v, drained %t, charged %t, unlocked with the key %t, towed %d times, locked in the end %t", met,
			drained, charged, keyed, towed, b.Locked,
		)
	}
}

func TestDay_EngagedImmobilizerPreventsDriving(t *testing.T) {
	b := Van(munich)
	b.Immobilizer = Engaged
	before := b.MileageKm
	d, rng := NewDay(6*time.Hour), Random(1, "van")
	for range 24 * 60 {
		d.Pass(&b, time.Minute, rng)
	}
	if b.MileageKm != before {
		t.Errorf("the car drove %v km, want 0", b.MileageKm-before)
	}
}
