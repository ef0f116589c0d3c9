package telematics

import (
	"testing"
	"time"
)

func TestAUnitsHabitsSayWhenToLookAgain(t *testing.T) {
	start := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	reports := func(gaps ...time.Duration) (Contact, time.Time) {
		c, now := Contact{}, start
		c = c.Reported(now)
		for _, gap := range gaps {
			now = now.Add(gap)
			c = c.Reported(now)
		}
		return c, now
	}
	steady := []time.Duration{2 * time.Minute, 2 * time.Minute, 2 * time.Minute}
	for name, test := range map[string]struct {
		gaps []time.Duration
		away time.Duration
		want time.Duration
	}{
		"never seen twice":               {nil, 5 * time.Minute, 30 * time.Second},
		"due in a minute":                {steady, time.Minute, time.Minute},
		"it left one out":                {steady, 150 * time.Second, 90 * time.Second},
		"due now":                        {steady, 119 * time.Second, 5 * time.Second},
		"it comes rarely":                {[]time.Duration{40 * time.Minute}, 2 * time.Minute, 10 * time.Minute},
		"a burst says nothing":           {append(steady, 100*time.Millisecond), 0, 2 * time.Minute},
		"one late report changes little": {append(steady, 10*time.Minute), 0, 3 * time.Minute},
	} {
		c, now := reports(test.gaps...)
		if got := c.LookAgain(now.Add(test.away)); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	overtaken, now := reports(steady...)
	if again := overtaken.Reported(now.Add(-time.Minute)); again.Gap != overtaken.Gap || again.LastSeen != overtaken.LastSeen {
		t.Errorf("a report that was overtaken changes the contact: %+v", again)
	}
}
