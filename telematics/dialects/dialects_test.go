package dialects

import (
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestFind_EmptyProtocolIsTheDefault(t *testing.T) {
	d, ok := Spoken.Find("")
	if !ok || d.Protocol() != telematics.DefaultProtocol || Spoken[0] != d {
		t.Errorf("Find(%q) = %v, %t", "", d, ok)
	}
	if d, ok := Spoken.Find("tomorrow"); ok {
		t.Errorf("Find of an unknown protocol returned %v", d)
	}
}

func TestParseTopic_EachTopicBelongsToOneDialect(t *testing.T) {
	owners := map[telematics.Protocol]int{}
	for _, d := range Spoken {
		for _, filter := range append(d.Filters().Reports, d.Filters().Answers) {
			topic := strings.NewReplacer("+", "353201350000001", "#", "v/b/soc").Replace(filter)
			for _, other := range Spoken {
				if _, _, err := other.ParseTopic(topic); (err == nil) != (other == d) {
					t.Errorf("%s of protocol %s, as protocol %s: %v", topic, d.Protocol(), other.Protocol(), err)
				}
			}
			if owner, _, _, ok := Spoken.ParseTopic(topic); ok {
				owners[owner.Protocol()]++
			}
		}
	}
	if len(owners) != len(Spoken) {
		t.Errorf("topics were found for the dialects %v, want all", owners)
	}
	if _, _, _, ok := Spoken.ParseTopic("another/353201350000001/topic"); ok {
		t.Error("an unknown topic was assigned to a dialect")
	}
}

func TestRefuse_VehicleWithoutUnit(t *testing.T) {
	for _, a := range append([]telematics.Action{telematics.ReportState, "fly"}, telematics.ControlActions...) {
		twin := telematics.Twin{Vehicle: telematics.Vehicle{Actions: telematics.ControlActions}}
		refusal := Spoken.Refuse(&twin, a, time.Now())
		if refusal == nil || refusal.Code != telematics.VehicleHasNoUnit || refusal.Outcome != telematics.NotExecuted || refusal.Retryable {
			t.Errorf("%s: %+v, want VehicleHasNoUnit", a, refusal)
		}
	}
}

func TestRefuse_UnknownProtocolIsRetryable(t *testing.T) {
	twin := telematics.Twin{Vehicle: telematics.Vehicle{Unit: "u", Protocol: "tomorrow", Actions: telematics.ControlActions}}
	refusal := Spoken.Refuse(&twin, telematics.Lock, time.Now())
	if refusal == nil || refusal.Code != telematics.TelematicsUnavailable || refusal.Outcome != telematics.NotExecuted ||
		!refusal.Retryable || !strings.Contains(refusal.Message, "tomorrow") {
		t.Errorf("refusal %+v, want a retryable one that names the protocol", refusal)
	}
	if _, err := Spoken.Encode(&telematics.Command{Protocol: "tomorrow"}, nil); err == nil {
		t.Error("a command was encoded in an unknown protocol")
	}
}
