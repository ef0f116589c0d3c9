package store

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"motorpool/store/groupcommit"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// RedisConfig says how to reach Redis.
type RedisConfig struct {
	// URL is redis://[user:password@]host:port[/db], or rediss:// for TLS. With
	// ?addr=host2:port2[&addr=…] it names the nodes of a cluster, and with
	// ?master_name=… the Sentinels that know the master.
	URL     string
	Timeout time.Duration // of connecting, writing, reading and waiting for a connection. Defaults to 1 s
	Logger  *slog.Logger  // Defaults to silence
}

// LogValue hides the password.
func (c RedisConfig) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", unavailable.RedactURL(c.URL)), slog.Duration("timeout", c.Timeout))
}

// Redis holds the table of commands that wait for an answer. It is safe for
// concurrent use.
type Redis struct {
	client   redis.UniversalClient
	log      *slog.Logger
	writer   string // nobody else's: with writings it names what this instance wrote
	writings atomic.Uint64

	parts []redisPart // of a cluster; else one
	reads *groupcommit.Batcher[telematics.VehicleID, readLatest]
}

// redisPart is a range of a cluster's slots; a server that is no cluster is one part.
type redisPart struct {
	deadlines     string // the key of its index of deadlines
	ready         string // the key that readiness writes
	registrations *groupcommit.Batcher[delivery.Pending, error]
}

// tripBatch is how many calls share one trip to Redis, at most, and tripFor is how long it may take in all.
const (
	tripBatch = 256
	tripFor   = 3 * time.Second
)

// NewRedis assembles the table. It connects when something is asked of it, so that a
// server may be away at the start. An error says that the address makes no sense.
func NewRedis(config RedisConfig) (*Redis, error) {
	hushLibrary()
	config.Timeout = cmp.Or(config.Timeout, time.Second)
	client, err := config.client()
	if err != nil {
		return nil, unavailable.BadAddress("redis", err)
	}
	r := &Redis{client: client, writer: uuid.NewString() + ":", log: cmp.Or(config.Logger, slog.New(slog.DiscardHandler))}
	trip := groupcommit.Limits{MaxBatch: tripBatch, Timeout: tripFor}
	if _, cluster := client.(*redis.ClusterClient); cluster {
		for _, tag := range partTags() {
			r.addPart(trip, deadlinesKey+":{"+tag+"}", readyKey+":{"+tag+"}")
		}
	} else {
		r.addPart(trip, deadlinesKey, readyKey)
	}
	r.reads = groupcommit.New(trip, r.readEach)
	return r, nil
}

func (r *Redis) addPart(trip groupcommit.Limits, deadlines, ready string) {
	indexing := &unavailable.Breaker{
		Opened: "the index of commands in flight is not written; commands go on",
		Closed: "the index of commands in flight is written again", Log: r.log,
	}
	register := func(ctx context.Context, commands []delivery.Pending) ([]error, error) {
		return r.register(ctx, deadlines, indexing, commands)
	}
	r.parts = append(r.parts, redisPart{deadlines: deadlines, ready: ready, registrations: groupcommit.New(trip, register)})
}

// partOf returns the part in which the keys of a unit are.
func (r *Redis) partOf(unit telematics.Unit) *redisPart {
	if len(r.parts) == 1 {
		return &r.parts[0]
	}
	return &r.parts[partOf(string(unit))]
}

// clusterReload is how old a cluster's topology may be. The library's own default, a minute, is for how long a master that was
// replaced would still be asked.
const clusterReload = time.Second

// client knows the three kinds of Redis. All give up early, and for the same reasons:
// what Redis tells is worth less than the time of a command.
func (c RedisConfig) client() (redis.UniversalClient, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	// Once more finds a server that came back; not at all would report it as gone.
	const retries, dials = 1, 1
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch query := u.Query(); {
	case query.Has("master_name"):
		o, err := redis.ParseFailoverURL(c.URL)
		if err != nil {
			return nil, err
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout, c.Timeout
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, retries, dials
		return redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(c.URL)
		if err != nil {
			return nil, err
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout, c.Timeout
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, retries, dials
		o.MaintNotificationsConfig = quiet
		o.ClusterStateReloadInterval = clusterReload
		return redis.NewClusterClient(o), nil
	default:
		o, err := redis.ParseURL(c.URL)
		if err != nil {
			return nil, err
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout, c.Timeout
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, retries, dials
		o.MaintNotificationsConfig = quiet
		return redis.NewClient(o), nil
	}
}

// Close closes the connections. Calls that are under way fail, and Listen returns
// once its context ends.
func (r *Redis) Close() error {
	return unavailable.Wrap("close redis", r.client.Close())
}

// hushLibrary stops the library from writing to standard error what it returns as
// errors too. Its logger is one for the whole process.
var hushLibrary = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
