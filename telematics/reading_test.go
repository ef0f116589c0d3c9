package telematics

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestAReadingRemembersThatThereWasAValue(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	report := func(after time.Duration, value any) Report {
		return Report{At: at.Add(after), Values: map[Field]any{SpeedKmh: value}}
	}
	for name, c := range map[string]struct {
		reports []Report
		want    Reading
		ever    bool
	}{
		"never a value":        {[]Report{report(0, nil), report(1e9, nil)}, Reading{nil, at.Add(1e9), false}, false},
		"a value":              {[]Report{report(0, 5.0)}, Reading{5.0, at, false}, true},
		"no longer known":      {[]Report{report(0, 5.0), report(1e9, nil)}, Reading{nil, at.Add(1e9), true}, true},
		"the other way round":  {[]Report{report(1e9, nil), report(0, 5.0)}, Reading{nil, at.Add(1e9), true}, true},
		"known again":          {[]Report{report(0, 5.0), report(1e9, nil), report(2e9, 6.0)}, Reading{6.0, at.Add(2e9), false}, true},
		"and forgotten again":  {[]Report{report(0, 5.0), report(1e9, nil), report(2e9, nil)}, Reading{nil, at.Add(2e9), true}, true},
		"at the same instant":  {[]Report{report(0, nil), report(0, 5.0)}, Reading{nil, at, true}, true},
		"the same, turned":     {[]Report{report(0, 5.0), report(0, nil)}, Reading{nil, at, true}, true},
		"a value, then itself": {[]Report{report(0, 5.0), report(0, 5.0)}, Reading{5.0, at, false}, true},
	} {
		var s Snapshot
		for _, r := range c.reports {
			s = Merge(s, r)
		}
		if got := s[SpeedKmh]; got != c.want || got.Ever() != c.ever {
			t.Errorf("%s: %+v, ever %v; want %+v, %v", name, got, got.Ever(), c.want, c.ever)
		}
	}
}

func TestWhateverTheOrderTheSameIsRemembered(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	values := []any{nil, nil, 5.0, 6.0}
	for range 500 {
		var reports []Report
		for range 6 {
			values := map[Field]any{SpeedKmh: values[rand.IntN(len(values))], OilLife: values[rand.IntN(len(values))]}
			reports = append(reports, Report{At: at.Add(time.Duration(rand.IntN(4)) * time.Second), Values: values})
		}
		var want Snapshot
		for i := range 4 {
			var got Snapshot
			for _, r := range append(reports, reports[i]) {
				got = Merge(got, r)
			}
			if i == 0 {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%v: %v, in another order %v", reports, got, want)
			}
			rand.Shuffle(len(reports), func(a, b int) { reports[a], reports[b] = reports[b], reports[a] })
		}
	}
}
