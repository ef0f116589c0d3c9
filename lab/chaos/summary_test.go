package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

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
