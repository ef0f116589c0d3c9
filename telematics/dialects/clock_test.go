package dialects

import (
	"fmt"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/teltonika"
	v1 "motorpool/telematics/v1"
)

// heard is a speed that a unit has reported: when it arrived, and by how much its time was later;
// times are from the beginning of a case.
type heard struct {
	arrived, ahead time.Duration
	kmh            int
}

// steadily returns a speed that a unit reports every 5 s from one time to another.
func steadily(from, to, ahead time.Duration, kmh int) (all []heard) {
	for arrived := from; arrived <= to; arrived += 5 * time.Second {
		all = append(all, heard{arrived, ahead, kmh})
	}
	return all
}

func TestForbids_WhatArrivesContradictsAWrongClock(t *testing.T) {
	const behind, late = -20 * time.Second, -40 * time.Second
	second := time.Second
	first := func(h heard, then []heard) []heard { return append([]heard{h}, then...) }
	cases := []struct {
		name               string
		heard              []heard
		at                 time.Duration
		immobilize, unlock bool // is forbidden
		// The dialect; empty: all. A speed of Teltonika's that is too far ahead does not count.
		only string
	}{
		{
			"the clock is right, and the vehicle has stopped",
			first(heard{0, 0, 50}, steadily(5*second, 5*second, 0, 0)), 6 * second, false, false, "",
		},
		{
			"one report of the future says that it drives",
			first(heard{0, 290 * second, 50}, steadily(5*second, 15*second, 0, 0)), 16 * second, false, false, "",
		},
		{
			"one report of the future says that it stands",
			first(heard{0, 290 * second, 0}, steadily(5*second, 15*second, 0, 80)), 16 * second, true, true, "",
		},
		{
			"of a clock that is behind: it drives",
			first(heard{0, 290 * second, 50}, steadily(5*second, 15*second, behind, 0)), 16 * second, true, false, "",
		},
		{
			"of a clock that is behind: it stands",
			first(heard{0, 290 * second, 0}, steadily(5*second, 15*second, behind, 80)), 16 * second, true, true, "",
		},
		{
			"one report too far ahead to count says that it drives",
			first(heard{0, time.Hour, 50}, steadily(5*second, 15*second, behind, 0)), 16 * second, true, false, "v1",
		},
		{
			"half a minute later it stands",
			first(heard{0, 290 * second, 50}, steadily(5*second, 30*second, behind, 0)), 31 * second, false, false, "",
		},
		{"reports that are always late: it drives", steadily(0, 60*second, late, 80), 61 * second, true, true, ""},
		{"reports that are always late: it stands", steadily(0, 60*second, late, 0), 61 * second, false, false, ""},
		{"reports that were always late, half a minute ago", steadily(0, 0, late, 80), 31 * second, false, false, ""},
		{"an old record says that it stands", []heard{{0, -second, 80}, {5 * second, -10 * time.Minute, 0}}, 6 * second, true, true, ""},
		{"an old record says that it drives", []heard{{0, -second, 0}, {5 * second, -10 * time.Minute, 80}}, 6 * second, true, false, ""},
	}
	began := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for _, c := range cases {
		for name, dialect := range map[string]struct {
			telematics.Dialect
			encode func(kmh int, at time.Time) string
		}{
			"v1": {v1.Dialect{}, func(kmh int, at time.Time) string {
				return fmt.Sprintf(`{"at":%q,"telemetry":{"speed_kmh":%d}}`, telematics.FormatTime(at), kmh)
			}},
			"teltonika": {teltonika.Dialect{}, func(kmh int, at time.Time) string {
				return fmt.Sprintf(`{"state":{"reported":{"ts":%d,"37":%d}}}`, at.UnixMilli(), kmh)
			}},
		} {
			if c.only != "" && c.only != name {
				continue
			}
			var s telematics.Snapshot
			for _, h := range c.heard {
				arrived := began.Add(h.arrived)
				r, _, err := dialect.DecodeReport(
					telematics.Message{Dialect: dialect, Unit: "u", Payload: []byte(dialect.encode(h.kmh, arrived.Add(h.ahead)))},
					arrived,
				)
				require.NoError(t, err)
				r.Bound(arrived)
				s = telematics.Merge(s, r)
			}
			now := began.Add(c.at)
			for action, want := range map[telematics.Action]bool{
				telematics.DisableDriving: c.immobilize, telematics.Unlock: c.unlock, telematics.Lock: false,
			} {
				if err := s.Forbids(action, now); (err != nil) != want {
					t.Errorf("%s, %s: %s is forbidden %t, want %t", name, c.name, action, err != nil, want)
				}
			}
		}
	}
}
