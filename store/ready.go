package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// readyFor is how long a key that readiness wrote stays.
const readyFor = 10 * time.Second

// Ready returns nil where Redis takes a key, of a cluster in each of its parts. A server that answers, and takes nothing because it is
// full or read-only, is not ready: no command could leave.
func (r *Redis) Ready(ctx context.Context) error {
	pipe := r.client.Pipeline()
	written := make([]*redis.StatusCmd, len(r.parts))
	for i, p := range r.parts {
		written[i] = pipe.Set(ctx, p.ready, r.writer, readyFor)
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
		return unavailable.Wrap(fmt.Sprintf("%d of %d parts of the redis cluster take no writes%s", failed, len(written), whyNotWritten(first)), first)
	}
	return unavailable.Wrap("write to redis"+whyNotWritten(first), first)
}

// whyNotWritten says what an operator has to look at, where Redis itself refused a write.
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
