package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/runner"
	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

// goodRound is a round with every kind of fault.
func goodRound() *round {
	r := &round{flags: flags{Seed: 7, Duration: time.Minute, Instances: 3, Vehicles: 300, Commands: 2}}
	begin := time.Unix(1767348000, 0)
	for i := range Kinds {
		r.injections.Add(injection{Fault: Fault{Kind: &Kinds[i]}, From: begin, To: begin.Add(2 * time.Second)})
	}
	r.evidence.Flights = []simulator.Event{
		{Kind: simulator.CommandReceived},
		{Kind: simulator.CommandReceived},
		{Kind: simulator.CommandStarted},
	}
	r.evidence.Commands = []audit.Row{{State: telematics.Succeeded}, {State: telematics.Succeeded, Late: true}}
	r.evidence.Published = []audit.Message{
		{
			At: begin.Add(time.Second), Unit: "car-1", Key: "one", Signed: true,
		},
		{At: begin.Add(2 * time.Second), Unit: "car-2", Key: "two", Signed: true},
		{Key: "forged"},
	}
	r.evidence.Calls = []audit.Call{
		{Status: 503, Code: telematics.TelematicsUnavailable},
		{},
	}
	r.evidence.ClientFlood = audit.ClientFlood{
		Interval: audit.Interval{From: begin.Add(time.Hour), To: begin.Add(time.Hour + time.Second)},
		Requests: clientFloodRequests,
	}
	r.evicted.Store(5)
	return r
}

// columns matches the gaps between columns, whose width depends on their content.
var columns = regexp.MustCompile(`  +`)

func (r *round) text() string {
	var b strings.Builder
	runner.Result{Summary: r.write, Worthless: r.worthless()}.Write(&b)
	return columns.ReplaceAllString(b.String(), "  ")
}

func TestSummary_ShowsFaultsAndResults(t *testing.T) {
	text := goodRound().text()
	for _, want := range []string{
		"seed", "7", "instance killed", "2s", "503 telematics_unavailable  1", "none (cut, killed, hung up)",
		"succeeded (late)  1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
}

func TestSummary_InvalidRoundHasTheReason(t *testing.T) {
	assert.Equal(t, goodRound().worthless(), "", "a valid round counts as invalid")
	for _, test := range []struct {
		spoil func(*round)
		want  string
	}{
		{func(r *round) { r.evidence.Flights = r.evidence.Flights[:2] }, "no car executed anything"},
		{func(r *round) { r.Commands = 100 }, "only 2 of 100 commands"},
		{func(r *round) { r.evidence.Published = r.evidence.Published[1:] }, "one key signed everything"},
		{func(r *round) { r.evidence.ClientFlood.Requests = 100 }, "a flood of only 100 requests"},
		{func(r *round) { r.evicted.Store(0) }, "redis evicted nothing"},
		{func(r *round) {
			r.evidence.Others = map[telematics.VehicleID]audit.Installed{1: {Unit: "car-1", Protocol: ovms.Protocol}}
		}, "of ovms units 0 starts"},
		{func(r *round) { r.injections = runner.Log[injection]{} }, `"instance killed" never happened`},
	} {
		r := goodRound()
		test.spoil(r)
		if why := r.worthless(); !strings.Contains(why, test.want) {
			t.Errorf("reason %q, want %q", why, test.want)
		}
		if !strings.Contains(r.text(), "this round proves nothing: ") {
			t.Errorf("the summary lacks the reason:\n%s", r.text())
		}
	}
}

// goodRoundOf is a round of one fault, of a minute.
func goodRoundOf(fault string) *round {
	r := &round{flags: flags{Fault: fault, Vehicles: 300, Commands: 20}}
	begin := time.Unix(1767348000, 0)
	r.loading = audit.Interval{From: begin, To: begin.Add(time.Minute)}
	struck := injection{Fault: Fault{Kind: Find(fault)}, From: begin.Add(15 * time.Second), To: begin.Add(45 * time.Second)}
	r.injections.Add(struck)
	for n := range 2 * leastLost {
		at, id := begin.Add(time.Duration(n+1)*time.Second), uuid.New()
		for _, kind := range []simulator.Kind{simulator.CommandStarted, simulator.CommandEnded} {
			e := simulator.Event{Kind: kind, Unit: "car-1", Command: id, Status: telematics.Succeeded, True: at}
			r.evidence.Flights = append(r.evidence.Flights, e)
		}
		r.evidence.Calls = append(r.evidence.Calls, audit.Call{Start: at})
	}
	r.evidence.Flights[len(r.evidence.Flights)-1].True = struck.To.Add(time.Second)
	r.evidence.Commands = make([]audit.Row, 20)
	r.evidence.Backends, r.evidence.Months = audit.Backends{Most: 1}, &audit.Months{Entries: 1, Samples: 1}
	r.moved = map[telematics.Unit]bool{"car-1": true}
	r.evicted.Store(5)
	return r
}

func TestSummary_InvalidRoundOfOneFaultHasTheReason(t *testing.T) {
	for _, fault := range []string{RedisEvicting, PostgresAsync, ShardKilled} {
		assert.Equal(t, goodRoundOf(fault).worthless(), "", "a valid round of %s counts as invalid", fault)
	}
	for _, test := range []struct {
		fault string
		spoil func(*round)
		want  string
	}{
		{RollingRestart, func(r *round) { r.evidence.Commands = nil }, "only 0 of 20 commands are on record"},
		{RollingRestart, func(r *round) { r.evidence.Flights = nil }, "no command was executed after the fault"},
		{RollingRestart, func(r *round) { r.evidence.Flights = r.evidence.Flights[:50] }, "no command was executed after the fault"},
		{RollingRestart, func(r *round) { r.evidence.Flights = r.evidence.Flights[50:] }, "no command was executed before the fault"},
		{RollingRestart, func(r *round) { r.evidence.Backends.Most = 0 }, "no connection of the service"},
		{MonthsEnd, func(r *round) { r.evidence.Months.Samples = 0 }, "1 audit log entries and 0 samples"},
		{RedisEvicting, func(r *round) { r.evicted.Store(0) }, "redis evicted nothing"},
		{PostgresAsync, func(r *round) {
			for _, e := range r.evidence.Flights[2*leastLost-2:] {
				r.evidence.Commands = append(r.evidence.Commands, audit.Row{ID: e.Command})
			}
		}, "the failover lost only 19 commands"},
		{ShardKilled, func(r *round) { r.moved = nil }, "0 of 300 units"},
		{ShardKilled, func(r *round) { r.Vehicles = 1 }, "1 of 1 units"},
		{ShardKilled, func(r *round) { r.Commands, r.evidence.Calls = 20, r.evidence.Calls[:16] }, "only 1 commands began"},
	} {
		r := goodRoundOf(test.fault)
		test.spoil(r)
		if why := r.worthless(); !strings.Contains(why, test.want) {
			t.Errorf("%s: reason %q, want %q", test.fault, why, test.want)
		}
	}
}

func TestSummary_UnsupportedFaultIsNamedAndAllowed(t *testing.T) {
	r := goodRound()
	struck := r.injections.All()
	r.injections = runner.Log[injection]{}
	for _, i := range struck {
		if i.Kind.Name == FullDisk {
			i.Err = errUnsupported
		}
		r.injections.Add(i)
	}
	assert.Equal(t, r.worthless(), "", "a round without an unsupported fault counts as invalid")
	if !strings.Contains(r.text(), FullDisk+"  not available here") {
		t.Errorf("the summary does not name the unsupported fault:\n%s", r.text())
	}
}
