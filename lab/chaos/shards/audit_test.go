package shards

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

func TestCheck_FindsWhatEachLawForbids(t *testing.T) {
	id, now := uuid.New(), time.Now()
	event := func(kind simulator.Kind, at time.Time) simulator.Event {
		return simulator.Event{Kind: kind, Unit: "car-1", Command: id, Expires: now.Add(time.Second), True: at}
	}
	started, ended := event(simulator.CommandStarted, now), event(simulator.CommandEnded, now)
	good := world.PlainCall{Vehicle: 1, Answer: world.Executed, Outcome: telematics.Executed, Command: id}
	refused := world.PlainCall{Vehicle: 1, Answer: "503 telematics_unavailable", Outcome: telematics.NotExecuted}
	moved := map[telematics.Unit]bool{"car-1": true}
	for name, c := range map[string]struct {
		call   world.PlainCall
		state  telematics.State
		events []simulator.Event
		moved  map[telematics.Unit]bool
		law    string
	}{
		"no violation":                          {good, telematics.Succeeded, []simulator.Event{started, ended}, nil, ""},
		"executed late":                         {good, telematics.Succeeded, []simulator.Event{event(simulator.CommandStarted, now.Add(2*time.Second)), ended}, nil, notLate},
		"executed twice":                        {good, telematics.Succeeded, []simulator.Event{started, started, ended}, nil, once},
		"executed, but unknown":                 {good, telematics.Unknown, []simulator.Event{started, ended}, nil, recorded},
		"not executed":                          {good, telematics.Succeeded, []simulator.Event{started}, nil, truth},
		"executed, but another response":        {world.PlainCall{Vehicle: 1, Answer: "503", Outcome: telematics.NotExecuted, Command: id}, telematics.Succeeded, []simulator.Event{started, ended}, moved, truth},
		"refused for another command in flight": {world.PlainCall{Vehicle: 1, Answer: inProgress, Outcome: telematics.NotExecuted, Command: id}, telematics.Succeeded, []simulator.Event{started, ended}, moved, ""},
		"refused at another shard":              {refused, telematics.Succeeded, nil, nil, undamaged},
		"refused at the killed shard":           {refused, telematics.Succeeded, nil, moved, ""},
	} {
		report := check([]world.PlainCall{c.call}, record{id: c.state}, c.events, c.moved)
		for _, law := range []string{notLate, once, recorded, truth, undamaged} {
			if found := len(report.Of(law)); (found > 0) != (law == c.law) {
				t.Errorf("%s: %d violations of %q", name, found, law)
			}
		}
	}
}

func TestResult_RoundWithoutUnitsAtTheKilledShardIsNotValid(t *testing.T) {
	r := Result{Config: Config{Vehicles: 3, Commands: 10}, Calls: map[string]int{world.Executed: 10}, During: 5, Moved: 1}
	if why := r.Worthless(); why != "" {
		t.Errorf("a valid round counts as invalid: %s", why)
	}
	for name, change := range map[string]func(*Result){
		"no unit": func(r *Result) { r.Moved = 0 }, "all units": func(r *Result) { r.Moved = 3 },
		"nothing during the failure": func(r *Result) { r.During = 0 }, "nothing executed": func(r *Result) { r.Calls = nil },
	} {
		worse := r
		change(&worse)
		if worse.Worthless() == "" {
			t.Errorf("%s: the round counts as valid", name)
		}
	}
}
