package telematics

import (
	"motorpool/internal/assert"
	"reflect"
	"testing"
	"time"
)

func TestChange_HasOnlyFieldsOfThePowertrain(t *testing.T) {
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	earlier := now.Add(-time.Minute)
	change := Change{
		Vehicle: 42, Agency: 7, Presence: Online, LastSeen: now,
		Fields: Snapshot{Battery: {Value: 80.0, At: now}, FuelLevel: {Value: 60.0, At: earlier}},
	}
	for powertrain, want := range map[Powertrain]struct {
		fields []Field
		at     time.Time
	}{
		Combustion:   {[]Field{FuelLevel}, earlier},
		Electric:     {[]Field{Battery}, now},
		PlugInHybrid: {[]Field{FuelLevel, Battery}, now},
	} {
		change.Powertrain = powertrain
		events := change.Events(now)
		if len(events) != 2 || events[0].Kind != PresenceEvent || events[1].Kind != StatusEvent {
			t.Fatalf("%s: events %+v, want presence and status", powertrain, events)
		}
		status := events[1]
		if status.Change.Fields.Len() != len(want.fields) || !status.At.Equal(want.at) || status.Vehicle != 42 || status.Agency != 7 {
			t.Errorf("%s: status event %+v", powertrain, status)
		}
		for _, field := range want.fields {
			if !status.Change.Fields.Has(field) {
				t.Errorf("%s: the event lacks %s", powertrain, field)
			}
		}
	}
}

func TestChange_WithoutVisibleDifferenceHasNoEvent(t *testing.T) {
	change := Change{Powertrain: Combustion, Fields: Snapshot{Battery: {Value: 80.0}, RawCharging: {Value: "waiting"}}}
	assert.EqualSlices(t, change.Events(time.Now()), nil, "events")
}

func TestChange_HasFieldsWithAnotherValue(t *testing.T) {
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	later := now.Add(time.Minute)
	before := Snapshot{
		SpeedKmh: {Value: 50.0, At: now}, Ignition: {Value: "on", At: now}, DTCs: {Value: []string{"P0420"}, At: now},
		OEMData: {Value: map[string]any{"a": 1.0}, At: now}, LocatedAt: {Value: now, At: now}, Gear: {At: now},
	}
	after := Snapshot{
		SpeedKmh: {Value: 50.0, At: later}, Ignition: {Value: "off", At: later}, DTCs: {Value: []string{}, At: later},
		OEMData: {Value: map[string]any{"a": 1.0}, At: later}, LocatedAt: {Value: now, At: later}, Gear: {At: later},
		IsLocked: {Value: true, At: later}, Sunroof: {At: later},
	}
	want := Snapshot{Ignition: after.Of(Ignition), DTCs: after.Of(DTCs), IsLocked: after.Of(IsLocked), Sunroof: after[Sunroof]}
	take := func(into, by Snapshot) Snapshot {
		fresh := NewSnapshot()
		for field, reading := range by.All() {
			if _, changed := into.KeepNewer(field, reading); changed {
				fresh[field] = reading
			}
		}
		return fresh
	}
	known := before.Clone()
	if fresh := take(known, after); !reflect.DeepEqual(fresh, want.Clone()) || !reflect.DeepEqual(known, Join(before, after)) {
		t.Errorf("changed %v, want %v; merged %v", fresh, want, known)
	}
	if fresh := take(known, before); !fresh.Empty() || !reflect.DeepEqual(known, Join(before, after)) {
		t.Errorf("an older snapshot changed %v", fresh)
	}
	if fresh := take(NewSnapshot(), before); !reflect.DeepEqual(fresh, before.Clone()) {
		t.Errorf("changed %v, want all of a first snapshot", fresh)
	}
}

func TestChange_WithoutVisibleDifferenceIsNotPublished(t *testing.T) {
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	s := Snapshot{RSRP: {Value: -80.0, At: now}}
	for i, step := range []struct {
		rsrp    any
		changed bool
	}{{-81.0, false}, {-97.0, true}, {-98.5, false}, {nil, true}, {-98.5, true}} {
		reading := Reading{Value: step.rsrp, At: now.Add(time.Duration(i+1) * time.Second)}
		if newer, changed := s.KeepNewer(RSRP, reading); !newer || changed != step.changed {
			t.Errorf("RSRP %v: newer %t, changed %t; want changed %t", step.rsrp, newer, changed, step.changed)
		}
	}
	confirmed := Snapshot{LocatedAt: {Value: now, At: now}}
	if (Change{Powertrain: Combustion, Fields: confirmed}).Events(now) != nil {
		t.Error("a confirmed position is published")
	}
	confirmed[Latitude] = Reading{Value: 48.1, At: now}
	if len((Change{Powertrain: Combustion, Fields: confirmed}).Events(now)) != 1 {
		t.Error("a new position is not published")
	}
}

func TestSameValue_ListsAndObjects(t *testing.T) {
	object := func(speed float64) map[string]any {
		return map[string]any{"a": []any{1.0, "x", nil, map[string]any{"speed": speed}}, "b": true}
	}
	for name, c := range map[string]struct {
		a, b any
		same bool
	}{
		"lists":                  {[]string{"P0420", "P0171"}, []string{"P0420", "P0171"}, true},
		"lists in another order": {[]string{"P0420", "P0171"}, []string{"P0171", "P0420"}, false},
		"an empty list and nil":  {[]string{}, nil, false},
		"objects":                {object(1), object(1), true},
		"deep in an object":      {object(1), object(2), false},
		"a member missing":       {object(1), map[string]any{"b": true}, false},
		"a member of null":       {map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		"of different types":     {map[string]any{}, []string{}, false},
	} {
		if SameValue(c.a, c.b) != c.same || SameValue(c.b, c.a) != c.same {
			t.Errorf("%s: want SameValue %t in both directions", name, c.same)
		}
	}
}
