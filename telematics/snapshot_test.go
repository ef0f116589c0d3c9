package telematics

import (
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestMerge_NewerReadingReplacesAnOlderOne(t *testing.T) {
	older := Report{At: now, Values: map[Field]any{SpeedKmh: 50.0, IsLocked: false, Ignition: "on"}}
	newer := Report{At: now.Add(time.Second), Values: map[Field]any{SpeedKmh: 0.0, IsLocked: nil}}
	want := Snapshot{
		SpeedKmh: {Value: 0.0, At: newer.At},
		IsLocked: {At: newer.At, Once: true}, // null since the newer report
		Ignition: {Value: "on", At: older.At},
	}
	for _, order := range [][]Report{{older, newer}, {newer, older}, {newer, older, newer, older}} {
		assert.DeepEqual(t, merged(order), want.Clone(), "snapshot")
	}
}

// A unit that does not date its values repeats all of them from time to time, also stale ones.
func TestMerge_RepeatedUndatedValueKeepsItsTime(t *testing.T) {
	say := func(after time.Duration, locked bool) Report {
		return Report{At: now.Add(after), Undated: true, Values: map[Field]any{IsLocked: locked}}
	}
	first, again, changed := say(0, true), say(time.Hour, true), say(2*time.Hour, false)
	for _, order := range [][]Report{{first, again}, {again, first}, {first, again, again}} {
		if got := merged(order); !got.Of(IsLocked).At.Equal(first.At) || got.Of(IsLocked).Value != true {
			t.Errorf("snapshot %v, want the time of the first report", got)
		}
	}
	if got := merged([]Report{first, again, changed}); got.Of(IsLocked).Value != false || !got.Of(IsLocked).At.Equal(changed.At) {
		t.Errorf("snapshot %v, want the change with its time", got)
	}
}

func TestSnapshot_ZeroValueIsEmpty(t *testing.T) {
	for _, s := range []Snapshot{
		Merge(nil, Report{At: now}), Merge(Snapshot{}, Report{At: now, Values: map[Field]any{}}),
		Join(nil, nil), Join(nil, Snapshot{}), Join(Snapshot{}, nil), Join(Snapshot{}, Snapshot{}),
	} {
		if s != nil {
			t.Errorf("snapshot %#v, want nil", s)
		}
	}
}

func merged(reports []Report) Snapshot {
	var s Snapshot
	for _, r := range reports {
		s = Merge(s, r)
	}
	return s
}

func TestSnapshot_ReturnsAFieldInItsTypeOrNothing(t *testing.T) {
	s := Snapshot{
		SpeedKmh: {
			Value: 50.0, At: now,
		},
		Ignition: {Value: "on", At: now}, IsLocked: {Value: true, At: now}, LocatedAt: {Value: now, At: now},
		DTCs: {Value: []string{"P0420"}, At: now}, Gear: {Value: nil, At: now},
	}
	if *s.Number(SpeedKmh) != 50 || *s.Text(Ignition) != "on" || !*s.Flag(IsLocked) || !s.Time(LocatedAt).Equal(now) ||
		!slices.Equal(s.Texts(DTCs), []string{"P0420"}) {
		t.Error("a known field has the wrong value")
	}
	if s.Text(Gear) != nil || s.Number(MileageKm) != nil || s.Flag(EngineRuns) != nil || s.Texts(WarningLamps) != nil ||
		s.Time(Heading) != nil {
		t.Error("an unknown field has a value")
	}
	if s.Number(Ignition) != nil || Snapshot(nil).Number(SpeedKmh) != nil {
		t.Error("a field has a value of another type")
	}
}

func TestOEM_HasRawValues(t *testing.T) {
	cases := []struct {
		name     string
		snapshot Snapshot
		want     map[string]any
	}{
		{"empty", nil, map[string]any{}},
		{
			"only nulls",
			Snapshot{OEMData: {Value: nil, At: now}, RawCharging: {Value: nil, At: now}, RawDTCs: {Value: nil, At: now}},
			map[string]any{},
		},
		{
			"manufacturer's data",
			Snapshot{OEMData: {Value: map[string]any{"a": 1.0}, At: now}, RawDTCs: {Value: []string{}, At: now}},
			map[string]any{"a": 1.0},
		},
		{
			"with raw values",
			Snapshot{
				OEMData: {
					Value: map[string]any{"a": 1.0}, At: now,
				},
				RawCharging: {Value: "plugged_in", At: now}, RawDTCs: {Value: []string{"12-34"}, At: now},
			},
			map[string]any{"a": 1.0, "charging_status": "plugged_in", "dtcs_raw": []string{"12-34"}},
		},
	}
	for _, c := range cases {
		assert.DeepEqual(t, c.snapshot.OEM(), c.want, "%s: OEM data", c.name)
	}
	s := Snapshot{OEMData: {Value: map[string]any{"a": 1.0}, At: now}}
	s.OEM()["b"] = 2
	if len(s.OEM()) != 1 {
		t.Error("OEM returned the snapshot's own map")
	}
}

func TestSectionTimes_AreThoseOfTheNewestField(t *testing.T) {
	s := Snapshot{
		SpeedKmh: {Value: 0.0, At: now}, Ignition: {Value: "on", At: now.Add(time.Minute)}, Gear: {Value: nil, At: now.Add(time.Second)},
		DTCs: {Value: []string{}, At: now.Add(-time.Hour)}, RawDTCs: {Value: nil, At: now.Add(-time.Hour)},
	}
	want := map[string]time.Time{"telemetry": now.Add(time.Minute), "diagnostics": now.Add(-time.Hour)}
	assert.DeepEqual(t, s.SectionTimes(), want, "section")
	s[RawDTCs] = Reading{Value: []string{"12-34"}, At: now}
	if got := s.SectionTimes()["oem_data"]; !got.Equal(now) {
		t.Errorf("with a raw code, oem_data is of %v", got)
	}
	if len(Snapshot(nil).SectionTimes()) != 0 {
		t.Error("an empty snapshot has section times")
	}
}

func TestOlder_HasFieldsOlderThanTheirSection(t *testing.T) {
	s := Snapshot{
		SpeedKmh: {Value: 0.0, At: now.Add(time.Minute)}, IsLocked: {Value: true, At: now}, Gear: {Value: nil, At: now},
		DTCs: {Value: []string{}, At: now.Add(-time.Hour)},
	}
	assert.DeepEqual(t, s.Older(), map[Field]time.Time{IsLocked: now}, "older fields")
}

func TestFor_HidesTheEnergyThatAPowertrainDoesNotHave(t *testing.T) {
	s := Snapshot{
		FuelLevel: {Value: 50.0, At: now}, Battery: {Value: 60.0, At: now}, Charging: {Value: nil, At: now},
		RawCharging: {Value: "plugged_in", At: now}, SpeedKmh: {Value: 0.0, At: now},
	}
	for p, want := range map[Powertrain][]Field{
		Combustion:   {FuelLevel, SpeedKmh},
		Electric:     {Battery, Charging, RawCharging, SpeedKmh},
		PlugInHybrid: {FuelLevel, Battery, Charging, RawCharging, SpeedKmh},
	} {
		slices.Sort(want)
		var got []Field
		for f := range s.For(p).All() {
			got = append(got, f)
		}
		assert.EqualSlices(t, got, want, "powertrain %s: fields", p)
	}
	if s.Len() != 5 {
		t.Error("For changed the snapshot")
	}
	if got := Snapshot(nil).For(Electric); !got.Empty() {
		t.Error("an empty snapshot has fields", got)
	}
}

func TestReading_RecordsThatThereWasAValue(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	report := func(after time.Duration, value any) Report {
		return Report{At: at.Add(after), Values: map[Field]any{SpeedKmh: value}}
	}
	for name, c := range map[string]struct {
		reports []Report
		want    Reading
		ever    bool
	}{
		"only nulls": {
			[]Report{report(0, nil), report(1e9, nil)}, Reading{Value: nil, At: at.Add(1e9), Once: false}, false,
		},
		"a value": {[]Report{report(0, 5.0)}, Reading{Value: 5.0, At: at, Once: false}, true},
		"a value, then null": {
			[]Report{report(0, 5.0), report(1e9, nil)}, Reading{Value: nil, At: at.Add(1e9), Once: true}, true,
		},
		"null, then an older value": {
			[]Report{report(1e9, nil), report(0, 5.0)}, Reading{Value: nil, At: at.Add(1e9), Once: true}, true,
		},
		"a value, null, a value": {
			[]Report{report(0, 5.0), report(1e9, nil), report(2e9, 6.0)}, Reading{Value: 6.0, At: at.Add(2e9), Once: false}, true,
		},
		"a value and two nulls": {
			[]Report{report(0, 5.0), report(1e9, nil), report(2e9, nil)}, Reading{Value: nil, At: at.Add(2e9), Once: true}, true,
		},
		"null and a value of the same time": {[]Report{report(0, nil), report(0, 5.0)}, Reading{Value: nil, At: at, Once: true}, true},
		"a value and null of the same time": {[]Report{report(0, 5.0), report(0, nil)}, Reading{Value: nil, At: at, Once: true}, true},
		"a repeated value":                  {[]Report{report(0, 5.0), report(0, 5.0)}, Reading{Value: 5.0, At: at, Once: false}, true},
	} {
		var s Snapshot
		for _, r := range c.reports {
			s = Merge(s, r)
		}
		if got := s.Of(SpeedKmh); got != c.want || got.Ever() != c.ever {
			t.Errorf("%s: reading %+v, ever a value %v; want %+v, %v", name, got, got.Ever(), c.want, c.ever)
		}
	}
}
