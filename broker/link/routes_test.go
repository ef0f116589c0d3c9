package link

import (
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestShards_UnitOfALostShardIsRefusedOnceItCouldHaveMoved(t *testing.T) {
	t.Parallel()
	s := NewShards(Config{}, []string{"tcp://a:1"}, []string{"tcp://b:1"})
	var client mqtt.Client
	s.links[1].air[0].client.Store(&client) // connected
	s.routes.set("car", route{shard: 0})
	for since, ok := range map[time.Duration]bool{0: true, moveWithin / 2: true, moveWithin + time.Second: false} {
		s.links[0].air[0].lost.Store(new(time.Now().Add(-since)))
		if err := s.Ready("car"); (err == nil) != ok {
			t.Errorf("Ready %v after the unit's shard was lost: %v, want success: %t", since, err, ok)
		}
		assert.NoError(t, s.Ready("another"), "Ready of a unit that may be at the other shard")
	}
}

func TestRoutes_RetainedMessageDoesNotOverrideANewerOne(t *testing.T) {
	for name, c := range map[string]struct {
		seen []route
		want int
	}{
		"live, then live at the other shard":               {[]route{{0, 0}, {1, 0}}, 1},
		"live, then retained at the other shard":           {[]route{{0, 0}, {1, 5}}, 0},
		"retained, then live at the other shard":           {[]route{{0, 5}, {1, 0}}, 1},
		"retained, then older retained at the other shard": {[]route{{0, 5}, {1, 4}}, 0},
		"retained, then newer retained at the other shard": {[]route{{0, 5}, {1, 6}}, 1},
	} {
		r := routes{known: map[telematics.Unit]route{}}
		for _, to := range c.seen {
			r.set("car", to)
		}
		if shard, ok := r.find("car"); !ok || shard != c.want {
			t.Errorf("%s: shard %d, found %v; want shard %d", name, shard, ok, c.want)
		}
	}
}
