package rollout

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
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
	good := call{answer: answered, command: a, took: time.Second}
	for name, c := range map[string]struct {
		calls  []call
		events []simulator.Event
		law    string
	}{
		"nothing":                    {[]call{good}, ended(a), ""},
		"no answer":                  {[]call{good, {answer: "no answer: EOF"}}, ended(a), noFailure},
		"an error":                   {[]call{good, {answer: "502 bad_gateway"}}, ended(a), noFailure},
		"not executed":               {[]call{good, {answer: answered, command: b}}, ended(a), once},
		"executed twice":             {[]call{good}, ended(a, a), once},
		"executed without an answer": {[]call{good}, ended(a, b), noOther},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResult(Config{Vehicles: 1}, c.calls, c.events, time.Minute)
			for _, law := range []string{noFailure, once, noOther} {
				if found := len(r.Of(law)); (found > 0) != (law == c.law) {
					t.Errorf("%d violations of %q", found, law)
				}
			}
			if r.Longest != time.Second {
				t.Errorf("longest wait %v", r.Longest)
			}
			if r.Worthless() == "" {
				t.Error("so few commands prove something")
			}
		})
	}
}
