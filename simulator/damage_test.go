package simulator

import (
	"slices"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestUnit_DamagedCopyIsRefusedAndTheIntactOneExecuted(t *testing.T) {
	onTheRoad(t, Config{Profile: Profile{Faults: Faults{Damage: Always}}}, func(r *road) {
		c := r.send(telematics.Unlock, 10*time.Second)
		r.wait(5 * time.Second)
		answers := r.radio.link().answers(t)
		if len(answers) != 3 {
			t.Fatalf("answers %+v, want bad_signature, received and succeeded", answers)
		}
		says(t, answers[0], telematics.Rejected, telematics.BadSignature, "")
		says(t, answers[2], telematics.Succeeded, "", "")
		var kinds []Kind
		for _, e := range r.recorder.Of(c.Command) {
			kinds = append(kinds, e.Kind)
		}
		if want := []Kind{
			CommandDamaged, CommandAnswered, CommandReceived, CommandAnswered, CommandStarted, CommandEnded,
			CommandAnswered,
		}; !slices.Equal(kinds, want) {
			t.Errorf("recorded %v, want %v", kinds, want)
		}
	})
}
