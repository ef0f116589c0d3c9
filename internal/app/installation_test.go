package app

import (
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/store/instances"
)

func TestPresence_AnInstanceLivesWhileItsBeatsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &presence{beats: map[string]beats{}}
		want := func(what string, want bool) {
			t.Helper()
			assert.Equal(t, p.lives("other"), want, "%s: lives", what)
		}
		want("never seen", false)
		p.note([]instances.Instance{{ID: "other", Beats: 7}})
		want("a row that may be old", false)
		time.Sleep(time.Second)
		p.note([]instances.Instance{{ID: "other", Beats: 8}})
		want("a new beat", true)
		for range 3 {
			time.Sleep(time.Second)
			p.note([]instances.Instance{{ID: "other", Beats: 8}})
		}
		want("no beat for 3 s", false)
		p.note(nil)
		if len(p.beats) > 0 {
			t.Errorf("%d beats of instances that are gone are kept", len(p.beats))
		}
	})
}
