package rollout

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

func TestNewResult_FindsWhatEachLawForbids(t *testing.T) {
	a, b := uuid.New(), uuid.New()
	ended := func(ids ...telematics.CommandID) (events []simulator.Event) {
		for _, id := range ids {
			events = append(events, simulator.Event{Kind: simulator.CommandEnded, Command: id})
		}
		return events
	}
	good := world.PlainCall{Answer: world.Executed, Command: a, Took: time.Second}
	for name, c := range map[string]struct {
		calls  []world.PlainCall
		events []simulator.Event
		law    string
	}{
		"no violation":                {[]world.PlainCall{good}, ended(a), ""},
		"no response":                 {[]world.PlainCall{good, {Answer: "no answer: EOF"}}, ended(a), noFailure},
		"error":                       {[]world.PlainCall{good, {Answer: "502 bad_gateway"}}, ended(a), noFailure},
		"not executed":                {[]world.PlainCall{good, {Answer: world.Executed, Command: b}}, ended(a), once},
		"executed twice":              {[]world.PlainCall{good}, ended(a, a), once},
		"executed without a response": {[]world.PlainCall{good}, ended(a, b), noOther},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResult(Config{Vehicles: 1}, c.calls, c.events, time.Minute)
			for _, law := range []string{noFailure, once, noOther} {
				if found := len(r.Of(law)); (found > 0) != (law == c.law) {
					t.Errorf("%d violations of %q", found, law)
				}
			}
			if r.Longest != time.Second {
				t.Errorf("the longest wait is %v, want 1s", r.Longest)
			}
			if r.Worthless() == "" {
				t.Error("a round with too few commands counts as valid")
			}
		})
	}
}
