// Package redis has the connection to Redis, and data that instances share there: the pending
// table, the counts of requests against their limits, leases, and the console's sessions. Redis may
// be emptied at any moment: commands wait longer, requests are counted anew, and users sign in
// again.
//
// Where a comment names no error, the error is that of Redis; unavailable.Is reports whether it
// could not be used.
package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"motorpool/guard"
	"motorpool/store/groupcommit"
	"motorpool/store/unavailable"
)

// Config configures the connections to Redis.
type Config struct {
	// URL is redis://[user:password@]host:port[/db], or rediss:// for TLS. With
	// ?addr=host2:port2[&addr=…] it names the nodes of a cluster, and with
	// ?master_name=… the Sentinels that know the master.
	URL string
	TLS *tls.Config // with rediss only. Defaults to the system's roots
	// Time of connecting, writing, reading and waiting for a connection. Defaults to 1 s.
	Timeout time.Duration
	Logger  *slog.Logger // Defaults to silence
	Guard   *guard.Guard // recovers panics. Nil: they are only logged
}

// LogValue hides the password.
func (c Config) LogValue() slog.Value {
	return slog.GroupValue(slog.String("url", unavailable.RedactURL(c.URL)), slog.Duration("timeout", c.Timeout))
}

// DB holds the connections to Redis. It is safe for concurrent use.
type DB struct {
	Client redis.UniversalClient
	Log    *slog.Logger
	Guard  *guard.Guard // of the process; may be nil

	parts []string // key suffixes of the parts of a cluster; else one, empty
}

// readyKey is written by Ready, in a cluster once in each part.
const readyKey = "motorpool:ready"

// New assembles the client. Connections are opened when they are used, so the server may be
// unavailable at the start. It returns an error only for an invalid address.
func New(config Config) (*DB, error) {
	silenceLibrary()
	config.Timeout = cmp.Or(config.Timeout, time.Second)
	client, err := config.client()
	if err != nil {
		return nil, unavailable.BadAddress("redis", err)
	}
	db := &DB{Client: client, Log: cmp.Or(config.Logger, slog.New(slog.DiscardHandler)), Guard: config.Guard, parts: []string{""}}
	if db.isCluster() {
		db.parts = nil
		for _, tag := range partTags() {
			db.parts = append(db.parts, ":{"+tag+"}")
		}
	}
	return db, nil
}

// client returns a client for one of the three kinds of Redis. All have short timeouts: no data in
// Redis is worth delaying a command for.
func (c Config) client() (redis.UniversalClient, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	// One more try finds a server that is available again; none would report it as unavailable.
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
		o.TLSConfig = c.secure(o.TLSConfig)
		return redis.NewFailoverClient(o), nil
	case query.Has("addr"):
		o, err := redis.ParseClusterURL(c.URL)
		if err != nil {
			return nil, err
		}
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = c.Timeout, c.Timeout, c.Timeout, c.Timeout
		o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, retries, dials
		o.TLSConfig = c.secure(o.TLSConfig)
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
		o.TLSConfig = c.secure(o.TLSConfig)
		o.MaintNotificationsConfig = quiet
		return redis.NewClient(o), nil
	}
}

// secure returns the TLS config of a connection, from the one that the library has read from the
// URL; nil: no TLS. Sentinels and the nodes of a cluster name servers that the URL does not, so
// each server is checked by the name by which it is reached.
func (c Config) secure(read *tls.Config) *tls.Config {
	if read == nil {
		return nil
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLS != nil {
		secured = c.TLS.Clone()
	}
	secured.InsecureSkipVerify = read.InsecureSkipVerify
	return secured
}

// silenceLibrary stops the library from logging to standard error: it returns the same errors. Its
// logger is global.
var silenceLibrary = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// Close closes the connections. Calls in progress fail, and Listen returns once its context ends.
func (db *DB) Close() error {
	return unavailable.Wrap("close redis", db.Client.Close())
}

// Ready returns nil where Redis accepts a write, in a cluster in each of its parts. A server that
// replies, but refuses writes because it is full or read-only, is not ready: no command could be
// sent.
func (db *DB) Ready(ctx context.Context) error {
	pipe := db.Client.Pipeline()
	written := make([]*redis.StatusCmd, len(db.parts))
	for i, part := range db.parts {
		written[i] = pipe.Set(ctx, readyKey+part, "", readyFor)
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	var failed int
	var first error
	for _, reply := range written {
		if err := reply.Err(); err != nil {
			failed++
			first = cmp.Or(first, err)
		}
	}
	switch {
	case first == nil:
		return nil
	case len(written) > 1:
		return unavailable.Wrap(
			fmt.Sprintf("%d of %d parts of the redis cluster take no writes%s", failed, len(written), whyNotWritten(first)),
			first,
		)
	}
	return unavailable.Wrap("write to redis"+whyNotWritten(first), first)
}

// whyNotWritten returns what an operator has to check, where Redis itself refused a write.
func whyNotWritten(err error) string {
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "OOM":
		return " (it is full: maxmemory is reached)"
	case "READONLY":
		return " (it is read-only: a replica)"
	case "MISCONF":
		return " (it refuses writes because it cannot save to its disk)"
	case "NOREPLICAS":
		return " (it refuses writes because it has too few replicas)"
	case "CLUSTERDOWN":
		return " (the cluster serves no slots: a master has failed)"
	}
	return ""
}

// NewBatcher returns a batcher of calls that share a round trip to Redis.
func NewBatcher[Req, Res any](g *guard.Guard, run func(context.Context, []Req) ([]Res, error)) *groupcommit.Batcher[Req, Res] {
	return groupcommit.New(groupcommit.Limits{MaxBatch: tripBatch, Timeout: tripTimeout, Guard: g}, run)
}

// ScriptCall is the parameters of one run of a script.
type ScriptCall struct {
	Keys []string
	Args []any
}

// RunScript runs a script for each call, in one round trip, and returns their replies, of which
// each has a separate error. To a server that does not have the script, because it is new or was
// emptied, RunScript sends its text: a cluster may have masters that the client does not know yet.
// Commands that after adds run after the script, and again if the script runs again.
func (db *DB) RunScript(
	ctx context.Context, script *redis.Script, calls []ScriptCall, after ...func(redis.Pipeliner),
) []*redis.Cmd {
	replies := make([]*redis.Cmd, len(calls))
	run := func(evaluate func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd) (missing bool) {
		pipe := db.Client.Pipeline()
		for i, call := range calls {
			if replies[i] == nil || redis.HasErrorPrefix(replies[i].Err(), "NOSCRIPT") {
				replies[i] = evaluate(ctx, pipe, call.Keys, call.Args...)
			}
		}
		for _, add := range after {
			add(pipe)
		}
		_, _ = pipe.Exec(ctx)
		for _, reply := range replies {
			missing = missing || redis.HasErrorPrefix(reply.Err(), "NOSCRIPT")
		}
		return missing
	}
	if run(script.EvalSha) {
		run(script.Eval)
	}
	return replies
}

// Retry calls once repeatedly, with growing pauses, until the context ends. once returns when it
// has lost Redis, and calls answered when Redis has replied, which resets the pauses. What is lost
// is logged.
func (db *DB) Retry(ctx context.Context, lost string, once func(ctx context.Context, answered func()) error) {
	var outage guard.Outage
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstPause), backoff.WithMaxInterval(longestPause), backoff.WithMaxElapsedTime(0),
	)
	for {
		err := db.Guard.Try("receive from redis", func() error {
			return once(ctx, func() { pause.Reset(); outage.Note(ctx, db.Log, lost, nil) })
		})
		if ctx.Err() != nil {
			return
		}
		wait := firstPause
		if !NotAdmitted(err) {
			outage.Note(ctx, db.Log, lost, err)
			wait = pause.NextBackOff()
		}
		if !guard.Pause(ctx, wait) {
			return
		}
	}
}
