package simulator

import (
	"testing"
	"time"

	"motorpool/telematics"
)

func TestSteps_MoveAPartForEveryControlAction(t *testing.T) {
	for _, action := range telematics.ControlActions {
		for _, step := range steps(action, &telematics.Attention{Duration: time.Second}, time.Second) {
			if step.part == "" {
				t.Errorf("the action %s moves no part: add it to effects", action)
			}
			if e := effects[step.action]; step.action != telematics.AttentionSignal && (e.move == nil || len(e.changes) == 0) {
				t.Errorf("the step %s of %s changes nothing: it would be answered as if it had", step.action, action)
			}
		}
	}
}
