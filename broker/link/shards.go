package link

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
)

// Shards is the connections with several MQTT brokers that do not know of each other, the shards. A
// unit is connected to one of them at a time. With a single shard, it is that shard's link.
//
// A unit uses the shard through which it was heard last. A command goes to that shard; to all that
// are connected where the unit was not heard yet, or where the command is published again: a load
// balancer may have moved the unit meanwhile, and a unit drops what it has.
//
// It is safe for concurrent use.
type Shards struct {
	links  []*Link
	routes routes
}

// NewShards assembles the links of shards, each with the nodes by which it is reached. The config
// has what they have in common.
func NewShards(c Config, shards ...[]string) *Shards {
	s := &Shards{routes: routes{known: map[telematics.Unit]route{}}}
	log := c.Logger
	for i, nodes := range shards {
		c.Nodes = nodes
		if log != nil && len(shards) > 1 {
			c.Logger = log.With("shard", i+1)
		}
		s.links = append(s.links, New(c))
	}
	return s
}

// ParseShards returns the nodes of each shard: shards are separate values, or separated by spaces;
// the nodes of a shard are separated by commas.
func ParseShards(values []string) [][]string {
	var shards [][]string
	for _, shard := range strings.Fields(strings.Join(values, " ")) {
		shards = append(shards, strings.Split(shard, ","))
	}
	return shards
}

// Links are those of the shards, in their order.
func (s *Shards) Links() []*Link { return s.links }

// Run keeps the connections up, and hands what arrives to the receiver, until the context ends.
func (s *Shards) Run(ctx context.Context, to Receiver) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, l := range s.links {
		heard := to
		if len(s.links) > 1 {
			heard = fromShard{Receiver: to, shard: i, routes: &s.routes}
		}
		group.Go(func() error { return l.Run(ctx, heard) })
	}
	return group.Wait()
}

// Publish hands a message to the shards where its unit may be, as Link.Publish does. An error means
// that none took it.
//
// While the shard of a unit is not connected, a first publication fails: the unit is not there, and
// is heard when it comes to another one.
func (s *Shards) Publish(t telematics.Transmission) error {
	if shard, ok := s.shardOf(t.Unit); ok && !t.Repeated {
		return s.links[shard].Publish(t)
	}
	var failures []error
	for _, l := range s.links {
		if err := l.Publish(t); err != nil {
			failures = append(failures, err)
		}
	}
	if len(failures) < len(s.links) {
		return nil
	}
	return errors.Join(failures...)
}

// Ready says whether commands to a unit can be published and their answers be received, or whether
// its shard was lost a moment ago: then the unit may come to another one before a command expires.
func (s *Shards) Ready(unit telematics.Unit) error {
	shard, ok := s.shardOf(unit)
	if !ok {
		return s.anyOf((*Link).Ready)
	}
	own := s.links[shard]
	err := own.Ready()
	if err != nil && own.lostWithin(moveWithin) && s.anyOf((*Link).Ready) == nil {
		return nil
	}
	return err
}

// AllReady says whether one shard at least is connected, telemetry and presence included: without
// any, nothing works.
func (s *Shards) AllReady() error { return s.anyOf((*Link).AllReady) }

func (s *Shards) anyOf(ready func(*Link) error) error {
	var missing []error
	for _, l := range s.links {
		err := ready(l)
		if err == nil {
			return nil
		}
		missing = append(missing, err)
	}
	return errors.Join(missing...)
}

func (s *Shards) shardOf(unit telematics.Unit) (shard int, ok bool) {
	if len(s.links) == 1 {
		return 0, true
	}
	return s.routes.find(unit)
}

// routes are the shards of units.
type routes struct {
	mu    sync.RWMutex
	known map[telematics.Unit]route
}

type route struct {
	shard int32
	// When the unit said what is retained at the shard, by its own clock; zero: it was heard there.
	// A retained message may be older than the unit's latest connection.
	retained int64
}

func (r *routes) find(unit telematics.Unit) (shard int, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found, ok := r.known[unit]
	return int(found.shard), ok
}

// set notes that a unit uses a shard. Beyond maxRoutes, units are not added: their commands go to
// all shards.
func (r *routes) set(unit telematics.Unit, to route) {
	r.mu.RLock()
	is, ok := r.known[unit]
	r.mu.RUnlock()
	if ok && is == to {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	is, ok = r.known[unit]
	switch {
	case ok && to.retained != 0 && (is.retained == 0 || is.retained >= to.retained):
	case ok:
		r.known[unit] = to
	case len(r.known) < maxRoutes:
		r.known[telematics.Unit(strings.Clone(string(unit)))] = to // not the whole topic
	}
}

// fromShard notes through which shard units are heard.
type fromShard struct {
	Receiver
	shard  int
	routes *routes
}

func (f fromShard) Answer(m telematics.Message) {
	f.noteSign(m)
	f.Receiver.Answer(m)
}

func (f fromShard) Report(m telematics.Message) {
	f.noteSign(m)
	f.Receiver.Report(m)
}

// noteSign notes where a unit is connected: what is not retained is a sign of that.
func (f fromShard) noteSign(m telematics.Message) {
	if !m.Retained {
		f.routes.set(m.Unit, route{shard: int32(f.shard)})
	}
}

// Presence takes no last will as a sign of the unit: that of a connection that has ended may come
// long after the next one has begun elsewhere.
func (f fromShard) Presence(m telematics.Message) bool {
	p, err := m.Dialect.DecodePresence(m, time.Now())
	switch {
	case err != nil || !slices.Contains([]telematics.PresenceStatus{telematics.Online, telematics.Standby}, p.Status):
	case m.Retained:
		f.routes.set(m.Unit, route{shard: int32(f.shard), retained: max(p.At.UnixMilli(), 1)})
	default:
		f.noteSign(m)
	}
	return f.Receiver.Presence(m)
}
