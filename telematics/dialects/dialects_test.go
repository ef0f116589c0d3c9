package dialects

import (
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestARecordThatNamesNoProtocolMeansTheDefault(t *testing.T) {
	d, ok := Spoken.Find("")
	if !ok || d.Protocol() != telematics.DefaultProtocol || Spoken[0] != d {
		t.Errorf("Find(%q) = %v, %t", "", d, ok)
	}
	if d, ok := Spoken.Find("tomorrow"); ok {
		t.Errorf("Find of what is not built returned %v", d)
	}
}

func TestRefuse_VehicleWithoutUnit(t *testing.T) {
	for _, a := range append([]telematics.Action{telematics.ReportState, "fly"}, telematics.ControlActions...) {
		twin := telematics.Twin{Vehicle: telematics.Vehicle{Actions: telematics.ControlActions}}
		refusal := Spoken.Refuse(&twin, a, time.Now())
		if refusal == nil || refusal.Code != telematics.VehicleHasNoUnit || refusal.Outcome != telematics.NotExecuted || refusal.Retryable {
			t.Errorf("%s: %+v", a, refusal)
		}
	}
}

func TestAProtocolOfAnotherVersionIsRefusedAndMayBeTriedAgain(t *testing.T) {
	twin := telematics.Twin{Vehicle: telematics.Vehicle{Unit: "u", Protocol: "tomorrow", Actions: telematics.ControlActions}}
	refusal := Spoken.Refuse(&twin, telematics.Lock, time.Now())
	if refusal == nil || refusal.Code != telematics.TelematicsUnavailable || refusal.Outcome != telematics.NotExecuted ||
		!refusal.Retryable || !strings.Contains(refusal.Message, "tomorrow") {
		t.Errorf("refusal %+v", refusal)
	}
	if _, err := Spoken.Encode(&telematics.Command{Protocol: "tomorrow"}, nil); err == nil {
		t.Error("a command was encoded in an unknown protocol")
	}
}
