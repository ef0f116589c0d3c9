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
)

// goodRound is a round with every kind of fault.
func goodRound() *summary {
	s := &summary{flags: flags{Seed: 7, Duration: time.Minute, Instances: 3, Vehicles: 300, Commands: 2}}
	begin := time.Unix(1767348000, 0)
	for i := range Kinds {
		s.Injections = append(
			s.Injections,
			injection{Fault: Fault{Kind: &Kinds[i]}, From: begin, To: begin.Add(2 * time.Second)},
		)
	}
	s.Evidence.Flights = []simulator.Event{
		{Kind: simulator.CommandReceived},
		{Kind: simulator.CommandReceived},
		{Kind: simulator.CommandStarted},
	}
	s.Evidence.Commands = []audit.Row{{State: telematics.Succeeded}, {State: telematics.Succeeded, Late: true}}
	s.Evidence.Published = []audit.Message{
		{
			At: begin.Add(time.Second), Unit: "car-1", Key: "one", Signed: true,
		},
		{At: begin.Add(2 * time.Second), Unit: "car-2", Key: "two", Signed: true},
		{Key: "forged"},
	}
	s.Evidence.Calls = []audit.Call{
		{Status: 503, Code: telematics.TelematicsUnavailable},
		{},
	}
	s.Evidence.ClientFlood = audit.ClientFlood{
		Interval: audit.Interval{From: begin.Add(time.Hour), To: begin.Add(time.Hour + time.Second)},
		Requests: clientFloodRequests,
	}
	s.Evicted = 5
	return s
}

// columns matches the gaps between columns, whose width depends on their content.
var columns = regexp.MustCompile(`  +`)

func (s *summary) text() string {
	var b strings.Builder
	runner.Result{Summary: s.write, Worthless: s.worthless()}.Write(&b)
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
		spoil func(*summary)
		want  string
	}{
		{func(s *summary) { s.Evidence.Flights = s.Evidence.Flights[:2] }, "no car executed anything"},
		{func(s *summary) { s.Commands = 100 }, "only 2 of 100 commands"},
		{func(s *summary) { s.Evidence.Published = s.Evidence.Published[1:] }, "one key signed everything"},
		{func(s *summary) { s.Evidence.ClientFlood.Requests = 100 }, "a flood of only 100 requests"},
		{func(s *summary) { s.Evicted = 0 }, "redis evicted nothing"},
		{func(s *summary) { s.Untried = "nothing started" }, "nothing started"},
		{func(s *summary) { s.Injections = s.Injections[1:] }, `"instance killed" never happened`},
	} {
		s := goodRound()
		test.spoil(s)
		if why := s.worthless(); !strings.Contains(why, test.want) {
			t.Errorf("reason %q, want %q", why, test.want)
		}
		if !strings.Contains(s.text(), "this round proves nothing: ") {
			t.Errorf("the summary lacks the reason:\n%s", s.text())
		}
	}
}

func TestSummary_UnsupportedFaultIsNamedAndAllowed(t *testing.T) {
	s := goodRound()
	for i := range s.Injections {
		if s.Injections[i].Kind.Name == FullDisk {
			s.Injections[i].Err = errUnsupported
		}
	}
	assert.Equal(t, s.worthless(), "", "a round without an unsupported fault counts as invalid")
	if !strings.Contains(s.text(), FullDisk+"  not available here") {
		t.Errorf("the summary does not name the unsupported fault:\n%s", s.text())
	}
}
