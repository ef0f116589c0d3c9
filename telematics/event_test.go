package telematics

import (
	"testing"
	"time"
)

func TestAChangeTellsOnlyWhatThePowertrainCanHave(t *testing.T) {
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
			t.Fatalf("%s: %+v", powertrain, events)
		}
		status := events[1]
		if len(status.Change.Fields) != len(want.fields) || !status.At.Equal(want.at) || status.Vehicle != 42 || status.Agency != 7 {
			t.Errorf("%s: %+v", powertrain, status)
		}
		for _, field := range want.fields {
			if _, ok := status.Change.Fields[field]; !ok {
				t.Errorf("%s: no %s", powertrain, field)
			}
		}
	}
}

func TestChange_WithoutVisibleDifferenceHasNoEvent(t *testing.T) {
	change := Change{Powertrain: Combustion, Fields: Snapshot{Battery: {Value: 80.0}, RawCharging: {Value: "waiting"}}}
	if events := change.Events(time.Now()); len(events) != 0 {
		t.Errorf("events %+v", events)
	}
}
