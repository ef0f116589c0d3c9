package broker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// ahead is how far the clock of a unit is ahead, within what is accepted [TEL-5].
const ahead = telematics.MaxAhead - 10*time.Second

// [TEL-2] A unit's clock is ahead, and is set right. What it reported before decides nothing any
// more once it has reported again.
func TestReport_OfTheFutureDecidesNothing(t *testing.T) {
	speed := func(at time.Time, kmh float64) telematics.Report {
		return telematics.Report{
			At: at,
			Values: map[telematics.Field]any{
				telematics.SpeedKmh: kmh, telematics.Latitude: kmh, telematics.Longitude: 11.5,
				telematics.LocatedAt: at,
			},
		}
	}
	for name, says := range map[string]func(w *world, r telematics.Report){
		"a report": func(w *world, r telematics.Report) {
			w.reports(0, r)
		},
		"the report in an answer": func(w *world, r telematics.Report) {
			w.answer(1, unit, telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: r.At, Report: &r})
		},
	} {
		for _, c := range []struct {
			first, then float64
			action      telematics.Action
			want        telematics.Code
		}{
			{50, 0, telematics.Unlock, ""},
			{50, 0, telematics.DisableDriving, ""},
			{0, 80, telematics.DisableDriving, telematics.VehicleStateConflict},
			{0, 80, telematics.Unlock, telematics.VehicleStateConflict},
		} {
			inWorld(t, 2, func(w *world) {
				w.answers(1, time.Second, telematics.Succeeded)
				says(w, speed(time.Now().Add(ahead), c.first))
				for range 3 {
					time.Sleep(time.Second)
					says(w, speed(time.Now(), c.then))
				}
				time.Sleep(time.Second)
				_, err := w.send(c.action)
				if err == nil && c.want != "" || err != nil && err.Code != c.want {
					t.Errorf("%s of %v, then %v km/h: %s: error %v, want %q", name, c.first, c.then, c.action, err, c.want)
				}
				twin, failure := w.Twin(w.Context(), car)
				position, ok := twin.Snapshot.Position()
				located := twin.Snapshot.Time(telematics.LocatedAt)
				if failure != nil || !ok || position.Latitude != c.then || located == nil || located.After(time.Now()) {
					t.Errorf("%s: position %v of %v, %v; want the latest one", name, position, located, failure)
				}
			})
		}
	}
}

// A unit that dates what it reports to a time that has not come yet neither confirms a command by
// what was so before, nor hides what the command has changed.
func TestConfirm_ReportOfTheFutureHidesNothing(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.addTruck(withClock)
		w.truckSays(0, fmt.Sprintf("locked yes %d", time.Now().Add(ahead).Unix()))
		time.Sleep(2 * time.Second)
		w.truckSays(0, fmt.Sprintf("locked no %d", time.Now().Unix()))
		synctest.Wait()
		time.Sleep(2 * time.Second)
		w.truckDoes(1, "answer done")
		c, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		if c.State != telematics.Unknown {
			t.Errorf("%+v, want unknown: no report confirms it", c)
		}
		time.Sleep(2 * time.Minute)
		w.mqtt.car = func(publication) {
			time.Sleep(2 * time.Second)
			w.truckSays(1, fmt.Sprintf("locked yes %d", time.Now().Unix()))
		}
		_, err = w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, "")
	})
}
