package plain

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/lab/chaos/runner"
	"motorpool/simulator"
	"motorpool/telematics"
)

func TestLaws_FindWhatEachForbids(t *testing.T) {
	a, b, now := uuid.New(), uuid.New(), time.Now()
	event := func(kind simulator.Kind, id telematics.CommandID, seq int64) simulator.Event {
		return simulator.Event{Kind: kind, Unit: "car-1", Command: id, Seq: seq, Expires: now.Add(time.Second), True: now}
	}
	started, ended := event(simulator.CommandStarted, a, 1), event(simulator.CommandEnded, a, 1)
	unasked, same := event(simulator.CommandEnded, b, 2), event(simulator.CommandStarted, b, 1)
	late, outOfOrder := started, event(simulator.CommandAnswered, a, 1)
	late.True = now.Add(2 * time.Second)
	outOfOrder.Status, outOfOrder.Reason = telematics.Rejected, telematics.OutOfOrder

	good := call{vehicle: 1, answer: executed, outcome: telematics.Executed, command: a}
	refused := call{vehicle: 1, answer: "503 telematics_unavailable", outcome: telematics.NotExecuted}
	falsely := call{vehicle: 1, answer: "503", outcome: telematics.NotExecuted, command: a}
	busy := call{vehicle: 1, answer: inProgress, outcome: telematics.NotExecuted, command: a}
	other := call{vehicle: 1, answer: executed, outcome: telematics.Executed, command: b}

	flight := []simulator.Event{started, ended}
	succeeded := record{states: map[telematics.CommandID]telematics.State{a: telematics.Succeeded}}
	unknown := record{states: map[telematics.CommandID]telematics.State{a: telematics.Unknown}}
	answered := func(entries int) record {
		return record{unrecorded: map[telematics.CommandID]bool{a: true}, entries: map[telematics.CommandID]int{a: entries}}
	}
	moved := map[telematics.Unit]bool{"car-1": true}

	for name, c := range map[string]struct {
		laws   []law
		calls  []call
		events []simulator.Event
		record record
		moved  map[telematics.Unit]bool
		want   string
	}{
		"a restart":                   {rolloutLaws, []call{good}, flight, succeeded, nil, ""},
		"no response":                 {rolloutLaws, []call{good, {answer: "no answer: EOF"}}, flight, succeeded, nil, noFailure.Name},
		"error":                       {rolloutLaws, []call{good, {answer: "502 bad_gateway"}}, flight, succeeded, nil, noFailure.Name},
		"not executed":                {rolloutLaws, []call{good, other}, flight, succeeded, nil, answeredOnce.Name},
		"executed twice":              {rolloutLaws, []call{good}, append(flight, ended), succeeded, nil, answeredOnce.Name},
		"executed without a response": {rolloutLaws, []call{good}, append(flight, unasked), succeeded, nil, noOther.Name},

		"a shard":                               {shardsLaws, []call{good}, flight, succeeded, nil, ""},
		"executed late":                         {shardsLaws, []call{good}, []simulator.Event{late, ended}, succeeded, nil, notLate.Name},
		"started twice":                         {shardsLaws, []call{good}, append(flight, started), succeeded, nil, startedOnce.Name},
		"executed, but unknown":                 {shardsLaws, []call{good}, flight, unknown, nil, recorded.Name},
		"answered, not executed":                {shardsLaws, []call{good}, flight[:1], succeeded, nil, truth.Name},
		"executed, but another response":        {shardsLaws, []call{falsely}, flight, succeeded, moved, truth.Name},
		"refused for another command in flight": {shardsLaws, []call{busy}, flight, succeeded, moved, ""},
		"refused at another shard":              {shardsLaws, []call{refused}, nil, succeeded, nil, undamaged.Name},
		"refused at the killed shard":           {shardsLaws, []call{refused}, nil, succeeded, moved, ""},

		"a failover":                     {failoverLaws, []call{good}, flight, succeeded, nil, ""},
		"lost, and its answer stored":    {failoverLaws, []call{good}, flight, answered(1), nil, ""},
		"lost, and forgotten":            {failoverLaws, []call{good}, flight, record{}, nil, notForgotten.Name},
		"logged twice":                   {failoverLaws, []call{good}, flight, answered(2), nil, loggedOnce.Name},
		"refused as out of order":        {failoverLaws, []call{falsely}, []simulator.Event{outOfOrder}, succeeded, nil, inOrder.Name},
		"a number that was given before": {failoverLaws, []call{good}, append(flight, same), succeeded, nil, grows.Name},
	} {
		e := &evidence{calls: c.calls, record: c.record, moved: c.moved}
		e.index(c.events)
		for _, l := range c.laws {
			violations := 0
			l.Check(e, func(holds bool, _ string, _ ...any) {
				if !holds {
					violations++
				}
			})
			if (violations > 0) != (l.Name == c.want) {
				t.Errorf("%s: %d violations of %q", name, violations, l.Name)
			}
		}
	}
}

func TestShards_RoundWithoutUnitsAtTheKilledShardIsNotValid(t *testing.T) {
	now := time.Now()
	valid := func() *shards {
		r := &shards{fleet: newFleet(nil, runner.Config{Vehicles: 3, Commands: 10}), from: now, to: now.Add(time.Minute)}
		r.moved = map[telematics.Unit]bool{"car-1": true}
		for range 10 {
			r.calls = append(r.calls, call{answer: executed, begin: now.Add(time.Second)})
		}
		return r
	}
	assert.Equal(t, valid().check(0).Worthless, "", "why a valid round is not valid")
	for name, change := range map[string]func(*shards){
		"no unit":                    func(r *shards) { r.moved = nil },
		"all units":                  func(r *shards) { r.moved = map[telematics.Unit]bool{"car-1": true, "car-2": true, "car-3": true} },
		"nothing during the failure": func(r *shards) { r.to = now },
		"nothing executed": func(r *shards) {
			for i := range r.calls {
				r.calls[i].answer = noAnswer
			}
		},
	} {
		worse := valid()
		change(worse)
		if worse.check(0).Worthless == "" {
			t.Errorf("%s: the round counts as valid", name)
		}
	}
}

func TestRollout_RoundWithFewCommandsIsNotValid(t *testing.T) {
	r := &rollout{fleet: newFleet(nil, runner.Config{Vehicles: 1})}
	if r.calls = make([]call, leastCalls-1); r.check(0).Worthless == "" {
		t.Error("a round with too few commands counts as valid")
	}
	if r.calls = make([]call, leastCalls); r.check(0).Worthless != "" {
		t.Error("a round with enough commands counts as invalid")
	}
}
