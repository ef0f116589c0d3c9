package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/internal/installation"
	"motorpool/store/instances"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/settings"
	"motorpool/store/vehicles"
)

// presence is this instance among those of its installation: its beats, the others, and the places
// that the installation must have for itself.
type presence struct {
	*installation.Keeper
	postgres *pg.DB
	cars     *vehicles.Fleet
	signing  *signingKeys
	instance string

	mu     sync.Mutex
	others []instances.Instance
	beats  map[string]beats // of all instances

	keyLooked time.Time // guarded by keyMu, as is keyWrong
	keyMu     sync.Mutex
	keyWrong  error
}

func (s *service) newPresence() *presence {
	p := &presence{postgres: s.postgres, cars: s.cars, signing: s.signing, instance: s.instance, beats: map[string]beats{}}
	places := map[string]installation.Place{"redis": redis.NewPlace(s.cache)}
	for i, l := range s.mqtt.Links() {
		name := "mqtt"
		if len(s.mqtt.Links()) > 1 {
			name = fmt.Sprintf("mqtt_shard_%d", i+1)
		}
		places[name] = l
	}
	p.Keeper = installation.New(installation.Config{
		Installation: func(ctx context.Context) (string, error) { return settings.Installation(ctx, s.postgres) },
		Instance:     s.instance, Beat: p.beat, Places: places, Logger: s.log, Guard: s.panics,
	})
	for place := range places {
		promauto.With(s.registry).NewGaugeFunc(prometheus.GaugeOpts{
			Name: "motorpool_other_installation", Help: "1 where another installation claims the server, or is refused there, else 0.",
			ConstLabels: prometheus.Labels{"place": place},
		}, func() float64 {
			if p.Others()[place] {
				return 1
			}
			return 0
		})
	}
	return p
}

func (p *presence) beat(ctx context.Context, least int64) (installation.Beats, error) {
	all, err := instances.Beat(ctx, p.postgres, p.instance, p.signing.active(), least)
	if errors.Is(err, pg.ErrFormer) {
		return nil, errors.Join(installation.ErrFormer, err)
	}
	if err != nil {
		return nil, err
	}
	beats := p.note(all)
	p.signing.refuse(p.keyReady(ctx))
	return beats, nil
}

// note records the instances that run, and returns the beats of all.
func (p *presence) note(all []instances.Instance) installation.Beats {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others = p.others[:0]
	now, read := time.Now(), installation.Beats{}
	for _, i := range all {
		read[i.ID] = i.Beats
		if known, ok := p.beats[i.ID]; !ok {
			p.beats[i.ID] = beats{n: i.Beats} // of a row that may be old
		} else if i.Beats != known.n {
			p.beats[i.ID] = beats{i.Beats, now}
		}
		if i.ID != p.instance && i.Running {
			p.others = append(p.others, i)
		}
	}
	maps.DeleteFunc(p.beats, func(id string, _ beats) bool { _, ok := read[id]; return !ok })
	return read
}

// beats are the number of an instance's beats, and when this instance saw it change.
type beats struct {
	n  int64
	at time.Time
}

// livesFor is how long after a beat an instance counts as one that runs; three beats. Half: a beat
// that waits for a slow Postgres counts as a death. Double: the commands of a dead one wait longer.
const livesFor = 3 * time.Second

// lives reports whether an instance has written a beat lately, seen by this instance.
func (p *presence) lives(instance string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.beats[instance].at) < livesFor
}

// keyEvery is the interval at which the units are counted by the keys that they hold, while
// instances sign with different ones.
const keyEvery = 10 * time.Second

// keyReady returns an error where another running instance signs with a key that more units hold,
// unless that key was replaced in this instance's file: then the other one has not read the new
// file yet. While all sign with the same key, it asks no server.
func (p *presence) keyReady(ctx context.Context) error {
	p.mu.Lock()
	own, other := p.signing.active(), ""
	for _, i := range p.others {
		if i.SigningKey != own && !p.signing.replaced(i.SigningKey) {
			other = i.SigningKey
		}
	}
	p.mu.Unlock()
	p.keyMu.Lock()
	defer p.keyMu.Unlock()
	if other == "" {
		p.keyWrong, p.keyLooked = nil, time.Time{}
		return nil
	}
	if time.Since(p.keyLooked) < keyEvery {
		return p.keyWrong
	}
	mine, err := p.cars.KeyHolders(ctx, own)
	if err != nil {
		return p.keyWrong // the database is a separate check
	}
	theirs, err := p.cars.KeyHolders(ctx, other)
	if err != nil {
		return p.keyWrong
	}
	p.keyLooked, p.keyWrong = time.Now(), nil
	if theirs.Holding > mine.Holding {
		p.keyWrong = fmt.Errorf(
			"this instance signs with the key %s, which %d units hold; another signs with %s, which %d units hold: "+
				"give all instances the same --signing-keys",
			own, mine.Holding, other, theirs.Holding,
		)
	}
	return p.keyWrong
}
