package httpapi

import (
	"testing"

	"motorpool/telematics"
)

func TestDone_HasASentenceForEveryControlAction(t *testing.T) {
	for _, action := range telematics.ControlActions {
		if doneFormats[action] == "" {
			t.Errorf("%s has no sentence in doneFormats", action)
		}
	}
}
