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
				t.Errorf("the action %s moves no part: add it to parts", action)
			}
		}
	}
}
