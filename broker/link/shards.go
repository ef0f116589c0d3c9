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
// A unit's shard is the one through which its latest message came. A command goes to that shard; to
// all connected shards where no message of the unit came yet, or where the command is
// retransmitted: a load balancer may have moved the unit meanwhile, and a unit drops duplicates.
//
// It is safe for concurrent use.
type Shards struct {
	links  []*Link
	routes routes
}

// NewShards assembles the links of shards, of which each has a list of nodes. All share the rest of
// the config. It does no I/O before Run.
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

// Links returns the links of the shards, in their order.
func (s *Shards) Links() []*Link { return s.links }

// Run keeps the connections up, and passes messages to the receiver. It blocks until the context
// ends, and then returns nil.
func (s *Shards) Run(ctx context.Context, to Receiver) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, l := range s.links {
		heard := to
		if len(s.links) > 1 {
			heard = fromShard{Receiver: to, shard: i, routes: &s.routes}
		}
		group.Go(func() error {
			return l.config.Guard.Keep(ctx, "run mqtt link", func(ctx context.Context) error { return l.Run(ctx, heard) })
		})
	}
	return group.Wait()
}

// Publish passes a message to the shards where its unit may be, as Link.Publish does. An error
// means that none accepted it.
//
// While the shard of a unit is not connected, a first publication fails: the unit cannot be there
// either, and its messages show when it comes to another shard.
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

// Ready returns why no command to a unit can be published, or no answer be received. It also
// returns nil where the unit's shard was lost within moveWithin and another shard is ready: the
// unit may come to that one before a command expires.
func (s *Shards) Ready(unit telematics.Unit) error {
	shard, ok := s.shardOf(unit)
	if !ok {
		return anyOf(s.links, (*Link).Ready)
	}
	own := s.links[shard]
	err := own.Ready()
	if err != nil && own.lostWithin(moveWithin) && anyOf(s.links, (*Link).Ready) == nil {
		return nil
	}
	return err
}

// AllReady returns nil where at least one shard is connected, telemetry and presence included.
func (s *Shards) AllReady() error { return anyOf(s.links, (*Link).AllReady) }

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
	// When the unit sent the retained presence at the shard, in Unix milliseconds by the unit's
	// clock; zero: a message that is not retained came from there. A retained message may be older
	// than the unit's latest connection.
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

// fromShard notes through which shard the messages of units come.
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

// noteSign notes where a unit is connected: a message that is not retained shows that.
func (f fromShard) noteSign(m telematics.Message) {
	if !m.Retained {
		f.routes.set(m.Unit, route{shard: int32(f.shard)})
	}
}

// Presence does not use a last will to locate the unit: that of a connection that has ended may
// come long after the next one has begun at another shard.
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
