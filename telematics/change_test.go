package telematics

import (
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
	if got := after.Since(before); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := before.Since(before); got != nil {
		t.Errorf("nothing has changed, yet %v", got)
	}
	if got := before.Since(nil); !reflect.DeepEqual(got, before) {
		t.Errorf("all of it is new, but %v", got)
	}
}
