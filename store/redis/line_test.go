package redis

import (
	"testing"

	"motorpool/store/storetest"
)

func TestNewest_KeepsTheHighestTimelineOfTheFirstSystem(t *testing.T) {
	for name, address := range map[string]string{"miniredis": miniredis(t), "redis": storetest.StartRedis(t).URL()} {
		db := open(t, address)
		for _, step := range []struct {
			system   string
			timeline int64
			want     string
			then     int64
		}{
			{"", 0, "", 0},
			{"7712584607280830095", 2, "7712584607280830095", 2},
			{"", 0, "7712584607280830095", 2},
			{"7712584607280830095", 1, "7712584607280830095", 2},
			// The systems differ beyond the digits of a float.
			{"7712584607280830096", 9, "7712584607280830095", 2},
			{"7712584607280830095", 10, "7712584607280830095", 10},
			{"7712584607280830095", 9, "7712584607280830095", 10},
		} {
			system, timeline, err := Line{db}.Newest(t.Context(), step.system, step.timeline)
			if err != nil || system != step.want || timeline != step.then {
				t.Errorf("%s: after timeline %d of %q: %d of %q, %v", name, step.timeline, step.system, timeline, system, err)
			}
		}
	}
}
