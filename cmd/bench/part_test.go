package main

import "testing"

func TestAPartIsSpreadOverTheWholeFleet(t *testing.T) {
	for _, c := range []struct{ fleet, vehicles, last int }{{100_000, 1000, 99_901}, {1000, 1000, 1000}, {500, 1000, 500}, {2500, 1000, 1999}} {
		p := partOf(c.fleet, c.vehicles)
		if first, last := p.id(0), p.id(p.Vehicles-1); first != 1 || last != c.last {
			t.Errorf("%d of %d: from %d to %d, want 1 to %d", c.vehicles, c.fleet, first, last, c.last)
		}
	}
}

func TestAVehicleOfAPartIsFoundAndNoOther(t *testing.T) {
	p := partOf(1000, 10)
	if place, ok := p.place(901); !ok || place != 9 {
		t.Errorf("vehicle 901: place %d, %t", place, ok)
	}
	for _, id := range []int{0, 2, 100, 1001, -99} {
		if place, ok := p.place(id); ok {
			t.Errorf("vehicle %d is said to be at place %d", id, place)
		}
	}
}
