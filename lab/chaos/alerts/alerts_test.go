package alerts

import (
	"testing"
	"time"

	"motorpool/lab/chaos/verdict"
)

func TestCheck_JudgesWhatFiresInAFault(t *testing.T) {
	from := time.Unix(1767348000, 0)
	to := from.Add(20 * time.Second)
	during, before, long := from.Add(15*time.Second), from.Add(-time.Second), to.Add(inTime+time.Second)
	const own, consequence = "MotorpoolLogLost", "MotorpoolAnswerInvented"
	for name, test := range map[string]struct {
		fired      map[string]time.Time
		stalled    bool
		violations int
	}{
		"its own":             {map[string]time.Time{own: during}, false, 0},
		"with a consequence":  {map[string]time.Time{own: during, consequence: during}, false, 0},
		"none":                {nil, false, 1},
		"another":             {map[string]time.Time{own: during, "MotorpoolAbsent": during}, false, 1},
		"before the fault":    {map[string]time.Time{own: before}, false, 1},
		"long after it":       {map[string]time.Time{own: long}, false, 1},
		"a late consequence":  {map[string]time.Time{own: during, consequence: long}, false, 1},
		"another, in a stall": {map[string]time.Time{own: during, "MotorpoolAbsent": during}, true, 0},
		"none, in a stall":    {nil, true, 0},
	} {
		report := verdict.New()
		Check(
			&report,
			Round{
				Fault: "invented", Of: Of{Must: own, May: consequence}, From: from, To: to, Fired: test.fired,
				Stalled: func(_, _ time.Time) bool { return test.stalled },
			},
		)
		if len(report.Violations) != test.violations {
			t.Errorf("%s: %d violations, want %d: %v", name, len(report.Violations), test.violations, report.Violations)
		}
	}
}
