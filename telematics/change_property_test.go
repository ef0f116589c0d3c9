package telematics

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// [LAW-7] Whoever advances, report by report, knows what whoever joins knows, and is told of all of it.
func TestAdvanceIsJoinAndTellsWhatItDid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, by := merged(drawReports(t)), merged(drawReports(t))
		wasBefore, wasBy := told(before), told(by)
		after, news, sections := before.Advance(by)
		wantSame(t, after, Join(before, by))
		for field, reading := range after {
			known, ok := before[field]
			same := ok && sameValue(known.Value, reading.Value)
			if _, isNews := news[field]; isNews == same {
				t.Errorf("%s: was %v, is %v, news: %t", field, known, reading, isNews)
			}
			if (!ok || reading.newerThan(known)) && !slices.Contains(sections, field.Section()) {
				t.Errorf("%s: was %v, is %v, sections %v", field, known, reading, sections)
			}
		}
		if clear(news); !maps.Equal(told(before), wasBefore) || !maps.Equal(told(by), wasBy) {
			t.Errorf("an argument was changed")
		}
	})
}
