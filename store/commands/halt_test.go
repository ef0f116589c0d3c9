package commands

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestHalt_IsActiveUntilItIsResumed(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.Vehicles(t, p.DB)() // adds agency 1
	inForce := func() telematics.Halts {
		t.Helper()
		halts, err := p.Halts(t.Context())
		require.NoError(t, err)
		return halts
	}
	all := telematics.Halt{Why: "recall", By: "eva"}
	by := telematics.Author{Actor: telematics.Actor{Subject: "tom", Role: telematics.Admin, Agency: 1}, RequestID: uuid.New()}
	strike, done, err := p.Halt(t.Context(), telematics.Halt{Agency: 1, Why: "strike"}, by)
	if !done || err != nil || strike.By != "tom" || strike.Why != "strike" || strike.Agency != 1 || strike.Since.IsZero() {
		t.Fatalf("Halt = %+v, %v, %v", strike, done, err)
	}
	again, _, err := p.Halt(t.Context(), telematics.Halt{Agency: 1, Why: "strike"}, telematics.OperatorAt("eva"))
	if err != nil || again != strike {
		t.Errorf("Halt repeated = %+v, %v; want %+v", again, err, strike)
	}
	for _, h := range []telematics.Halt{all, all} {
		if _, done, err := p.Halt(t.Context(), h, telematics.OperatorAt(h.By)); !done || err != nil {
			t.Fatalf("Halt(%+v) = %v, %v", h, done, err)
		}
	}
	halts := inForce()
	if len(halts) != 2 || halts[0].Why != "recall" || halts[1].By != "tom" || halts[0].Since.IsZero() {
		t.Errorf("active halts %+v, want eva's recall and tom's strike", halts)
	}
	typo := telematics.Halt{Agency: 4711, Why: "typo", By: "eva"}
	if _, done, err := p.Halt(t.Context(), typo, telematics.OperatorAt("eva")); done || err != nil {
		t.Errorf("Halt of an unknown agency: %v, %v; want neither", done, err)
	}
	for _, want := range []bool{true, false} {
		if lifted, err := p.Resume(t.Context(), 0, "doors are repaired", telematics.OperatorAt("eva")); lifted != want || err != nil {
			t.Errorf("Resume = %v, %v; want %v", lifted, err, want)
		}
	}
	if halts := inForce(); len(halts) != 1 || halts[0].Agency != 1 {
		t.Errorf("active halts %+v, want that of agency 1", halts)
	}
	lines, err := p.Activities(t.Context(), telematics.ActivityQuery{})
	if err != nil || len(lines) != 3 { // a repeated halt adds none
		t.Fatalf("%d entries, %v; want 3", len(lines), err)
	}
	if l := lines[0]; l.Action != telematics.CommandsResume || l.Actor.Subject != "eva" || l.Actor.Role != telematics.System ||
		l.At.IsZero() ||
		l.Note != "doors are repaired" {
		t.Errorf("entry %+v, want a resume by eva with its reason", l)
	}
	if l := lines[2]; l.Action != telematics.CommandsHalt || l.Agency != 1 || l.Note != "strike" || l.Actor != by.Actor ||
		l.RequestID != by.RequestID {
		t.Errorf("entry %+v, want a halt of agency 1, with the caller's actor and request ID", l)
	}
	other, _, err := p.Halt(t.Context(), telematics.Halt{Agency: 1, Why: "theft"}, telematics.OperatorAt("eva"))
	if err != nil || other.Why != "theft" || other.By != "eva" || !other.Since.After(strike.Since) {
		t.Errorf("Halt for another reason = %+v, %v", other, err)
	}
}

func TestEffects_CountVehiclesAndOpenCommands(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	newVehicle := storetest.Vehicles(t, p.DB) // of agency 1
	for n := range 6 {
		vehicle, _ := newVehicle()
		c := brokertest.NewCommand(vehicle, telematics.Lock)
		if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
			t.Fatal(claim, err)
		}
		var err error
		switch n {
		case 0, 1:
		case 2, 3, 4:
			err = p.StoreProgress(
				t.Context(),
				[]delivery.Note{{Command: c.ID, Progress: delivery.Progress{SentAt: time.Now(), Attempts: 1}}},
			)
		case 5:
			_, _, err = p.Settle(t.Context(), delivery.Settlement{Command: c.ID, State: telematics.Expired, At: time.Now()})
		}
		require.NoError(t, err)
	}
	effects, err := p.Effects(t.Context(), telematics.Halts{{Agency: 2}, {}, {Agency: 1}})
	all := telematics.HaltEffect{Vehicles: 6, Withheld: 2, InFlight: 3}
	if want := []telematics.HaltEffect{{}, all, all}; err != nil || !slices.Equal(effects, want) {
		t.Errorf("effects %+v, %v; want %+v", effects, err, want)
	}
}
