package store

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/rental"
)

// nonceKey names what was used of one agency's key. Neither part can have a colon.
func nonceKey(key, nonce string) string { return "motorpool:nonce:" + key + ":" + nonce }

var errNonceNotAsked = awayError{errors.New("spend nonce: redis did not answer a moment ago")}

// Nonces remembers in Redis which signatures were used, for all instances together. It is safe for concurrent use.
type Nonces struct {
	redis    *Redis
	patience time.Duration
	outage   *outage
}

// Nonces returns the memory of used signatures.
func (r *Redis) Nonces() *Nonces {
	return &Nonces{redis: r, patience: askFor, outage: &outage{
		begins: "clients' changes are refused, and a signature may be used again for reads",
		ends:   "clients' changes are taken again", log: r.log,
	}}
}

// Spend reports whether the nonce is used for the first time with the key. An error says that it cannot be
// known; it comes soon.
func (n *Nonces) Spend(ctx context.Context, key, nonce string) (bool, error) {
	if !n.outage.mayAsk() {
		return false, errNonceNotAsked
	}
	ask, cancel := context.WithTimeout(ctx, n.patience)
	defer cancel()
	first, err := n.spend(ask, nonceKey(key, nonce))
	if ctx.Err() == nil { // else the caller left, which says nothing of Redis
		n.outage.learn(wrap("spend nonce", err))
	}
	return first && err == nil, wrap("spend nonce", err)
}

// spend writes a mark of its own. The library asks again where an answer was lost: then the mark that is in the way may
// be ours, from a moment ago.
func (n *Nonces) spend(ctx context.Context, key string) (bool, error) {
	mark := n.redis.writer + strconv.FormatUint(n.redis.writings.Add(1), 36)
	set, err := n.redis.client.SetNX(ctx, key, mark, rental.NonceKept).Result()
	if set || err != nil {
		return set, err
	}
	there, err := n.redis.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) { // forgotten in between: it was used eleven minutes ago
		return false, nil
	}
	return there == mark, err
}
