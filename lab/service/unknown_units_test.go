package service_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"motorpool/store/vehicles"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

type unknownUnitView struct {
	Unit      string    `json:"unit"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Messages  int64     `json:"messages"`
}

// takeOut removes the unit of a vehicle, as if it had never been on record.
func (s *stack) takeOut(unit telematics.Unit) {
	s.Helper()
	fleet := s.fleet
	fleet.Vehicles = nil
	for _, v := range s.fleet.Vehicles {
		if v.Unit == unit {
			v.Unit = ""
			fleet.Vehicles = append(fleet.Vehicles, v)
		}
	}
	_, err := vehicles.New(s.owner).Import(s.Context(), fleet)
	s.must(err)
}

func TestUnknownUnits_ListedUntilTheyAreOnRecord(t *testing.T) {
	t.Parallel()
	s := startStack(t, 2)
	s.takeOut("car-2")
	i, other := s.serve(), s.serve()
	const messages = 40
	for n := range messages {
		s.whisper("car-2", v1.TelemetryChannel, fmt.Appendf(nil, `{"telemetry":{"speed_kmh":%d}}`, n))
	}
	var list []unknownUnitView
	s.eventually(20*time.Second, "all of its messages are counted", func() bool {
		i.get("/api/v1/admin/units/unknown", &list)
		return len(list) == 1 && list[0].Messages == messages
	})
	if u := list[0]; u.Unit != "car-2" || time.Since(u.FirstSeen) > time.Minute || u.LastSeen.Before(u.FirstSeen) {
		s.Errorf("listed as %+v", u)
	}
	if n := i.metric("motorpool_unknown_unit_messages_total") + other.metric("motorpool_unknown_unit_messages_total"); n != messages {
		s.Errorf("counted %d messages, want %d", n, messages)
	}
	own := s.token(telematics.Actor{Subject: "own", Role: telematics.Admin, Agency: 2})
	i.do(http.MethodGet, "/api/v1/admin/units/unknown", "Authorization", "Bearer "+own).wants(403, "forbidden")
	s.record()
	if i.get("/api/v1/admin/units/unknown", &list); len(list) != 0 {
		s.Errorf("a unit on record is listed: %+v", list)
	}
}
