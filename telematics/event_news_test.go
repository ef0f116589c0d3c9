package telematics

import (
	"testing"
	"time"
)

func TestChange_WithoutVisibleDifferenceIsNotPublished(t *testing.T) {
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	s := Snapshot{RSRP: {Value: -80.0, At: now}}
	for i, step := range []struct {
		rsrp any
		news bool
	}{{-81.0, false}, {-97.0, true}, {-98.5, false}, {nil, true}, {-98.5, true}} {
		reading := Reading{Value: step.rsrp, At: now.Add(time.Duration(i+1) * time.Second)}
		if newer, changed := s.Take(RSRP, reading); !newer || changed != step.news {
			t.Errorf("%v: newer %t, changed %t, want %t", step.rsrp, newer, changed, step.news)
		}
	}
	confirmed := Snapshot{LocatedAt: {Value: now, At: now}}
	if (Change{Powertrain: Combustion, Fields: confirmed}).Events(now) != nil {
		t.Error("a confirmed position is published")
	}
	confirmed[Latitude] = Reading{Value: 48.1, At: now}
	if len((Change{Powertrain: Combustion, Fields: confirmed}).Events(now)) != 1 {
		t.Error("a new position is not told")
	}
}
