package store

import (
	"testing"

	"motorpool/telematics"
)

func TestAHaltIsInForceUntilItIsLifted(t *testing.T) {
	p := open(t, newDatabase(t))
	vehicles(t, p)() // with its agency
	inForce := func() telematics.Halts {
		t.Helper()
		halts, err := p.Halts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return halts
	}
	everybody := telematics.Halt{Why: "recall", By: "eva"}
	agency := telematics.Halt{Agency: 1, Why: "strike", By: "tom"}
	for _, h := range []telematics.Halt{agency, everybody, everybody} {
		if done, err := p.Halt(t.Context(), h); !done || err != nil {
			t.Fatalf("Halt(%+v) = %v, %v", h, done, err)
		}
	}
	halts := inForce()
	if len(halts) != 2 || halts[0].Why != "recall" || halts[1].By != "tom" || halts[0].Since.IsZero() {
		t.Errorf("in force: %+v", halts)
	}
	if done, err := p.Halt(t.Context(), telematics.Halt{Agency: 4711, Why: "typo", By: "eva"}); done || err != nil {
		t.Errorf("of an agency that does not exist: %v, %v", done, err)
	}
	for _, want := range []bool{true, false} {
		if lifted, err := p.Resume(t.Context(), everybody); lifted != want || err != nil {
			t.Errorf("Resume = %v, %v; want %v", lifted, err, want)
		}
	}
	if halts := inForce(); len(halts) != 1 || halts[0].Agency != 1 {
		t.Errorf("in force: %+v", halts)
	}
	lines, err := p.Activities(t.Context(), telematics.ActivityQuery{})
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if l := lines[0]; l.Action != telematics.CommandsResume || l.Actor.Subject != "eva" || l.Actor.Role != telematics.System || l.At.IsZero() {
		t.Errorf("line %+v", l)
	}
	if l := lines[3]; l.Action != telematics.CommandsHalt || l.Agency != 1 || l.Note != "strike" {
		t.Errorf("line %+v", l)
	}
}
