package service_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

type unitView struct {
	Unit  string `json:"unit"`
	Clock *struct {
		ErrorMS int64 `json:"error_ms"`
	} `json:"clock"`
	Reconnects *int `json:"reconnects"`
	Rejects    []struct {
		Reason string `json:"reason"`
		Count  int    `json:"count"`
	} `json:"rejects"`
	Commands []struct {
		Reason string `json:"reason"`
		Count  int    `json:"count"`
	} `json:"rejected_commands"`
	Problems []string `json:"problems"`
}

func TestUnits_ProblemsAreListed(t *testing.T) {
	t.Parallel()
	s := startStack(t, 2)
	i, other := s.serve(), s.serve()
	say := func(channel v1.Channel, payload string) { s.whisper("car-2", channel, []byte(payload)) }
	say(v1.TelemetryChannel, `{`)
	say(
		v1.TelemetryChannel,
		`{"at":"`+telematics.FormatTime(time.Now().Add(2*time.Minute))+`","connectivity":{"rsrp_dbm":-120},"telemetry":{"gear":"Z"}}`,
	)
	for n := range 3 {
		say(
			v1.PresenceChannel,
			fmt.Sprintf(`{"status":"online","session":"s-%d","at":"%s","keys":["another"]}`, n, telematics.FormatTime(time.Now())),
		)
	}
	var list []unitView
	want := []string{"key", "clock", "rejects", "signal"}
	s.eventually(60*time.Second, "its problems are listed", func() bool {
		i.get("/api/v1/admin/units?problem=any&q=car-2", &list)
		return len(list) == 1 && slices.Equal(list[0].Problems, want) && *list[0].Reconnects == 2 && len(list[0].Rejects) == 2
	})
	u := list[0]
	if ahead := time.Duration(u.Clock.ErrorMS) * time.Millisecond; ahead < 90*time.Second || ahead > 2*time.Minute {
		s.Errorf("the clock is listed as %v ahead, want about 2m", ahead)
	}
	for _, reject := range u.Rejects {
		if reject.Reason != "malformed" && reject.Reason != "unknown_word" || reject.Count != 1 {
			s.Errorf("the rejected messages are %+v", u.Rejects)
		}
	}
	if other.get("/api/v1/admin/units", &list); len(list) != len(s.fleet.Vehicles) {
		s.Errorf("%d units are listed, want the whole fleet", len(list))
	}
}
