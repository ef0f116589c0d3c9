package telematics

import (
	"reflect"
	"slices"
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
	merged, news, sections := before.Advance(after)
	if !reflect.DeepEqual(news, want) || !reflect.DeepEqual(merged, Join(before, after)) {
		t.Errorf("news %v, want %v; merged %v", news, want, merged)
	}
	if slices.Sort(sections); !slices.Equal(sections, []string{"diagnostics", "location", "oem_data", "telemetry"}) {
		t.Errorf("newer sections %v", sections)
	}
	if same, news, sections := after.Advance(before); news != nil || sections != nil || !reflect.DeepEqual(same, after) {
		t.Errorf("what is older has changed %v, %v", news, sections)
	}
	if all, news, _ := Snapshot(nil).Advance(before); !reflect.DeepEqual(news, before) || !reflect.DeepEqual(all, before) {
		t.Errorf("all of it is new, but %v", news)
	}
}
