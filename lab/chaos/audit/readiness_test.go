package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

// busy is a world in which instance 1 executes many commands to a sound vehicle, while another
// client of Postgres has locked another one.
func busy() (e Evidence, calls []*Call) {
	w := &world{Evidence: healthy(), n: 1000, line: 1000}
	from := noon.Add(30 * time.Minute)
	before := len(w.Calls)
	for n := range judged {
		w.add(order{vehicle: 4, action: telematics.Lock, at: from.Add(ms(400 * n)), end: telematics.Succeeded})
	}
	e = w.Evidence
	e.Sound[4], e.Sound[5] = true, true
	e.Locks = append(
		e.Locks,
		Lock{
			Interval: Interval{From: from.Add(-time.Second), To: from.Add(time.Minute)}, What: "vehicle 5",
			Vehicles: []telematics.VehicleID{5},
		},
	)
	for i := before; i < len(e.Calls); i++ {
		calls = append(calls, &e.Calls[i])
	}
	return e, calls
}

// refuse makes every nth call one that the service refused.
func refuse(calls []*Call, every int) {
	for i, c := range calls {
		if i%every == 0 {
			c.Status, c.Code, c.Outcome = 503, telematics.TelematicsUnavailable, telematics.MayHave
		}
	}
}

func TestReadiness_CommandsThatFailAtAReadyInstanceAreFound(t *testing.T) {
	for _, c := range []struct {
		name   string
		law    string // that finds it; empty: none does
		what   string
		commit func(*Evidence, []*Call)
	}{
		{"all is well", "", "", func(*Evidence, []*Call) {}},
		{
			"refused while it says that it is ready", "ready means able",
			"instance 1 said that it was ready, and 5 of 20", func(e *Evidence, calls []*Call) {
				e.Locks = nil
				refuse(calls, 4)
			},
		},
		{"no answer for long", "ready means able", "map[no answer:20]", func(e *Evidence, calls []*Call) {
			e.Locks = nil
			for _, c := range calls {
				c.Status, c.Outcome, c.Command, c.End = 0, "", telematics.NoCommand, c.Start.Add(25*time.Second)
			}
		}},
		{"a caller hangs up", "", "", func(e *Evidence, calls []*Call) {
			for _, c := range calls {
				c.Status, c.Outcome, c.Command, c.Patience = 0, "", telematics.NoCommand, ms(20)
			}
		}},
		{"refused for its own sake", "", "", func(e *Evidence, calls []*Call) {
			refuse(calls, 1)
			for _, c := range calls {
				c.Code = telematics.CommandInProgress
			}
		}},
		{"refused, and it had just become ready", "", "", func(e *Evidence, calls []*Call) {
			e.Locks = nil
			e.Ready[1] = []Interval{{From: calls[0].Start}}
			refuse(calls, 1)
		}},
		{"refused, and it soon says that it is not ready", "", "", func(e *Evidence, calls []*Call) {
			e.Locks = nil
			e.Ready[1] = []Interval{{From: noon, To: calls[0].End.Add(readyNoticed)}}
			refuse(calls, 1)
		}},
		{"refused, and it says that it is not ready", "", "", func(e *Evidence, calls []*Call) {
			e.Locks, e.Ready = nil, nil
			refuse(calls, 1)
		}},
		{"one in twenty", "", "", func(e *Evidence, calls []*Call) { refuse(calls, judged) }},
		{"refused for less than a second", "", "", func(e *Evidence, calls []*Call) {
			e.Locks = nil
			refuse(calls[5:8], 1)
		}},
		{"refused for more than a second", "ready means able", "4 of 20", func(e *Evidence, calls []*Call) {
			e.Locks = nil
			refuse(calls[5:9], 1)
		}},
		{"the machine stalls", "", "", func(e *Evidence, calls []*Call) {
			e.Stalls = []Interval{{From: calls[0].Start, To: calls[0].Start.Add(time.Minute)}}
			refuse(calls, 1)
		}},
		{
			"a lock refuses others", "a lock stops no other",
			"another client locked vehicle 5 for 1m1s: of 20 commands to other sound vehicles 5 failed", func(e *Evidence, calls []*Call) {
				e.Ready = nil
				refuse(calls, 4)
			},
		},
		{"a lock delays others", "a lock stops no other", "20 took more than 3s", func(e *Evidence, calls []*Call) {
			for _, c := range calls {
				c.End = c.Start.Add(soundTakes + ms(1))
			}
		}},
		{"a lock refuses its own vehicle", "", "", func(e *Evidence, calls []*Call) {
			e.Locks[1].Vehicles = []telematics.VehicleID{4}
			refuse(calls, 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, calls := busy()
			c.commit(&e, calls)
			found := map[string]string{}
			for _, v := range Check(e).Violations {
				if v.Law == "ready means able" || strings.HasPrefix(v.Law, "a lock") {
					found[v.Law] = v.What
				}
			}
			if len(found) > 1 || c.law == "" && len(found) > 0 || !strings.Contains(found[c.law], c.what) {
				t.Errorf("found %s, want %q by the law %q", fmt.Sprint(found), c.what, c.law)
			}
		})
	}
}
