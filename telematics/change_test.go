package telematics

import (
	"maps"
	"reflect"
	"testing"
	"time"
)

func TestNewsIsWhatHasAnotherValue(t *testing.T) {
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
	want := Snapshot{Ignition: after[Ignition], DTCs: after[DTCs], IsLocked: after[IsLocked], Sunroof: after[Sunroof]}
	take := func(into, by Snapshot) Snapshot {
		news := Snapshot{}
		for field, reading := range by {
			if _, changed := into.Take(field, reading); changed {
				news[field] = reading
			}
		}
		return news
	}
	known := maps.Clone(before)
	if news := take(known, after); !reflect.DeepEqual(news, want) || !reflect.DeepEqual(known, Join(before, after)) {
		t.Errorf("news %v, want %v; known %v", news, want, known)
	}
	if news := take(known, before); len(news) > 0 || !reflect.DeepEqual(known, Join(before, after)) {
		t.Errorf("what is older has changed %v", news)
	}
	if news := take(Snapshot{}, before); !reflect.DeepEqual(news, before) {
		t.Errorf("all of it is new, but %v", news)
	}
}
