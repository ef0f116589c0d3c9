package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFirstThingOnTheAgendaIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		in := func(d time.Duration) time.Time { return now.Add(d) }
		for name, tt := range map[string]struct {
			agenda agenda
			want   time.Duration
		}{
			"the deadline alone":  {agenda{end: in(10 * time.Second)}, 10 * time.Second},
			"a publication":       {agenda{end: in(10 * time.Second), again: in(2 * time.Second), note: in(3 * time.Second)}, 2 * time.Second},
			"a note":              {agenda{end: in(10 * time.Second), again: in(2 * time.Second), note: in(time.Second)}, time.Second},
			"what comes too late": {agenda{end: in(10 * time.Second), again: in(11 * time.Second)}, 10 * time.Second},
			"what is overdue":     {agenda{end: in(10 * time.Second), note: in(-time.Second)}, -time.Second},
		} {
			if got := tt.agenda.rest(); got != tt.want {
				t.Errorf("%s: rest for %v, want %v", name, got, tt.want)
			}
		}
		for at, want := range map[time.Time]bool{{}: false, now: true, in(-time.Second): true, in(time.Nanosecond): false} {
			if due(at) != want {
				t.Errorf("%v is due: %v, want %v", at, !want, want)
			}
		}
	})
}
