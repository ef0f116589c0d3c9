package samples

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// buckets returns those of reports such as "8:00 100m 30km/h off", whose places are so far to the
// north of the first one, and whose ignition is off.
func buckets(t *testing.T, reports ...string) (all []Bucket) {
	t.Helper()
	for _, report := range reports {
		at, rest, _ := strings.Cut(report, " ")
		clock, err := time.Parse("15:04:05", at)
		require.NoError(t, err)
		var metres, speed float64
		rest, off := strings.CutSuffix(rest, " off")
		n, _ := fmt.Sscanf(rest, "%fm %fkm/h", &metres, &speed)
		b := Bucket{Begin: clock, LocatedAt: clock, Position: &telematics.Position{Latitude: 48 + metres/111_195, Longitude: 11.5}}
		if n == 2 {
			b.Speed = &Values{Min: speed, Avg: speed, Max: speed}
		}
		if off {
			b.Ignition = new(bool)
		}
		all = append(all, b)
	}
	return all
}

func TestTrips(t *testing.T) {
	for name, c := range map[string]struct {
		reports []string
		want    string
	}{
		"none":                  {nil, ""},
		"one position":          {[]string{"08:00:00 0m 30km/h"}, ""},
		"it stands, inaccurate": {[]string{"08:00:00 0m", "08:05:00 40m", "08:10:00 5m", "08:15:00 45m", "08:20:00 0m"}, ""},
		"it is parked elsewhere": {
			[]string{"08:00:00 0m 0km/h", "08:00:15 60m 10km/h", "08:00:30 80m 0km/h", "08:05:00 80m 0km/h"}, "",
		},
		"a drive": {
			[]string{"08:00:00 0m 0km/h", "08:04:00 10m 20km/h", "08:04:15 200m 40km/h", "08:04:30 400m 0km/h", "08:10:00 400m 0km/h"},
			"08:04:00-08:04:30 390m",
		},
		"without speeds": {
			[]string{"08:00:00 0m", "08:05:00 0m", "08:06:00 500m", "08:07:00 900m", "08:10:00 900m", "08:15:00 900m"},
			"08:05:00-08:07:00 900m",
		},
		"a traffic light": {
			[]string{"08:00:00 0m 30km/h", "08:01:00 500m 30km/h", "08:04:00 510m 0km/h", "08:05:00 900m 30km/h"},
			"08:00:00-08:05:00 900m",
		},
		"an errand": {
			[]string{"08:00:00 0m 30km/h", "08:01:00 500m 0km/h", "08:05:00 500m 0km/h", "08:07:00 500m 20km/h", "08:08:00 900m 30km/h"},
			"08:00:00-08:01:00 500m, 08:07:00-08:08:00 400m",
		},
		"a slow jam": {
			[]string{
				"08:00:00 0m 30km/h", "08:01:00 500m 30km/h", "08:03:00 540m 1km/h", "08:05:00 580m 1km/h", "08:07:00 620m 1km/h",
				"08:09:00 660m 1km/h", "08:10:00 1000m 30km/h",
			},
			"08:00:00-08:10:00 1000m",
		},
		"a receiver that errs": {
			[]string{
				"08:00:00 0m 30km/h", "08:01:00 500m 0km/h off", "08:05:00 900m 0km/h off", "08:10:00 480m 0km/h off",
				"08:15:00 800m 0km/h off", "08:20:00 500m 0km/h off",
			},
			"08:00:00-08:01:00 500m",
		},
		"a tow": {
			[]string{"08:00:00 0m 0km/h off", "08:01:00 500m 30km/h off", "08:02:00 900m 30km/h off"},
			"08:00:00-08:02:00 900m",
		},
		"a slow tow": {[]string{"08:00:00 0m off", "08:05:00 500m off"}, "08:00:00-08:05:00 500m"},
		"a tunnel":   {[]string{"08:00:00 0m 50km/h", "08:01:00 900m 50km/h", "08:09:00 7000m 50km/h"}, "08:00:00-08:09:00 7000m"},
		"a garage":   {[]string{"08:00:00 0m 0km/h", "18:00:00 300m 30km/h", "18:01:00 900m 50km/h"}, "18:00:00-18:01:00 600m"},
		"a slow start": {
			[]string{
				"08:00:00 0m 0km/h", "08:00:15 10m 20km/h", "08:00:30 30m 0km/h", "08:01:30 80m 30km/h", "08:01:45 125m 10km/h",
				"08:07:00 125m 0km/h",
			},
			"08:00:15-08:01:45 115m",
		},
		"not heard": {[]string{"08:00:00 0m 30km/h", "08:01:00 500m 30km/h", "12:00:00 90000m 0km/h"}, "08:00:00-08:01:00 500m"},
	} {
		var got []string
		for _, trip := range Trips(buckets(t, c.reports...)) {
			from, to := trip.Track[0].LocatedAt, trip.Track[len(trip.Track)-1].LocatedAt
			got = append(got, fmt.Sprintf("%s-%s %.0fm", from.Format("15:04:05"), to.Format("15:04:05"), math.Round(trip.Metres)))
			// Read alone, as its file is, it is the same.
			if again := Trips(trip.Track); len(again) != 1 || again[0].Metres != trip.Metres {
				t.Errorf("%s: the trip alone is %+v", name, again)
			}
		}
		assert.Equal(t, strings.Join(got, ", "), c.want, "%s", name)
	}
}

func TestTrips_LeaveOutBucketsWithoutAPosition(t *testing.T) {
	all := buckets(t, "08:00:00 0m 30km/h", "08:01:00 500m 30km/h", "08:02:00 900m 30km/h")
	all[1].Position = nil
	if trips := Trips(all); len(trips) != 1 || len(trips[0].Track) != 2 || all[1].Speed == nil {
		t.Errorf("%+v", trips)
	}
}
