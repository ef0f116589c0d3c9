package main

import (
	"strings"
	"testing"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
)

func TestFlags_EachFaultAloneIsASeparateRound(t *testing.T) {
	all := flags{Instances: 3, Vehicles: 300, Callers: 96, Fault: everyFault}
	if err := all.complete(); err != nil || all.Commands != briefCommands || all.Duration != briefDuration {
		t.Fatalf("all faults: %v, %+v", err, all)
	}
	names := names(false)
	if len(names) < 10 {
		t.Errorf("only %v", names)
	}
	for _, name := range names {
		one := all.of(name)
		if err := one.complete(); err != nil || one.Fault != name || one.Seed != all.Seed {
			t.Errorf("%s: %v, %+v", name, err, one)
		}
	}
	printed := flags{Instances: 3, Vehicles: 300, Callers: 96, Fault: everyFault, Print: true}
	if printed.complete() == nil {
		t.Error("--print was not refused")
	}
}

func TestWriteEach_WorstRoundIsTheExitCode(t *testing.T) {
	round := func(violations int) *runner.Result {
		r := &runner.Result{Report: verdict.New("a law"), Done: 1234}
		for range violations {
			r.Must("a law", false, "broken")
		}
		return r
	}
	good, bad := each{"good", round(0), 0, time.Second}, each{"bad", round(2), violated, time.Second}
	broken := each{"broken", nil, worthless, time.Second}
	for _, test := range []struct {
		rounds []each
		code   int
	}{{[]each{good}, 0}, {[]each{good, broken, good}, worthless}, {[]each{bad, broken, good}, violated}, {[]each{broken, bad}, violated}} {
		var text strings.Builder
		if code := writeEach(&text, test.rounds); code != test.code {
			t.Errorf("exit code %d, want %d:\n%s", code, test.code, &text)
		}
	}
	var text strings.Builder
	writeEach(&text, []each{bad, broken})
	for _, want := range []string{"1234", "the harness broke", "violations: 2\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &text)
		}
	}
}
