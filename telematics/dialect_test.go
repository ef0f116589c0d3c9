package telematics_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/dialecttest"
)

func TestProtocolV1KeepsTheContractOfDialects(t *testing.T) {
	golden := func(file string) string {
		b, err := os.ReadFile("testdata/wire/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	dialecttest.Contract(t, telematics.V1{}, dialecttest.Samples{
		Unit:     "358240051111110",
		Answer:   dialecttest.Line{Topic: "motorpool/v1/358240051111110/ack", Payload: golden("answer-succeeded.json")},
		Report:   dialecttest.Line{Topic: "motorpool/v1/358240051111110/telemetry", Payload: golden("report-full.json")},
		Presence: dialecttest.Line{Topic: "motorpool/v1/358240051111110/presence", Payload: golden("presence-online.json")},
	})
}

func TestARecordThatNamesNoProtocolMeansTheDefault(t *testing.T) {
	d, ok := telematics.Spoken.Find("")
	if !ok || d.Protocol() != telematics.DefaultProtocol || telematics.Spoken[0] != d {
		t.Errorf("Find(%q) = %v, %t", "", d, ok)
	}
	if d, ok := telematics.Spoken.Find("tomorrow"); ok {
		t.Errorf("Find of what is not built returned %v", d)
	}
}

func TestRefuse_VehicleWithoutUnit(t *testing.T) {
	for _, a := range append([]telematics.Action{telematics.ReportState, "fly"}, telematics.ControlActions...) {
		twin := telematics.Twin{Vehicle: telematics.Vehicle{Actions: telematics.ControlActions}}
		refusal := telematics.Spoken.Refuse(twin, a, time.Now())
		if refusal == nil || refusal.Code != telematics.VehicleHasNoUnit || refusal.Outcome != telematics.NotExecuted || refusal.Retryable {
			t.Errorf("%s: %+v", a, refusal)
		}
	}
}

func TestAProtocolOfAnotherVersionIsRefusedAndMayBeTriedAgain(t *testing.T) {
	twin := telematics.Twin{Vehicle: telematics.Vehicle{Unit: "u", Protocol: "tomorrow", Actions: telematics.ControlActions}}
	refusal := telematics.Spoken.Refuse(twin, telematics.Lock, time.Now())
	if refusal == nil || refusal.Code != telematics.TelematicsUnavailable || refusal.Outcome != telematics.NotExecuted ||
		!refusal.Retryable || !strings.Contains(refusal.Message, "tomorrow") {
		t.Errorf("refusal %+v", refusal)
	}
	if _, err := telematics.Spoken.Encode(&telematics.Command{Protocol: "tomorrow"}, nil); err == nil {
		t.Error("a command was encoded in an unknown protocol")
	}
}
