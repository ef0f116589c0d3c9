package store

import (
	"context"
	"errors"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"motorpool/telematics"
)

// askFor is how long a request waits for what it can do without.
const askFor = 250 * time.Millisecond

// The library puts "rate:" before it.
func limitKey(key string) string { return "motorpool:" + key }

var errNotAsked = awayError{errors.New("count request: redis did not answer a moment ago")}

// Limits counts requests in Redis, for all instances together. It is safe for concurrent use.
type Limits struct {
	counter  *redis_rate.Limiter
	patience time.Duration
	outage   *outage
}

// Limits returns the count of requests.
func (r *Redis) Limits() *Limits {
	return &Limits{counter: redis_rate.NewLimiter(r.client), patience: askFor, outage: &outage{
		begins: "requests pass without being counted against their limits",
		ends:   "requests are counted against their limits again", log: r.log,
	}}
}

// Take takes n of so many in a time, or none where fewer are left. What is unused adds up, to that time's worth. An
// error says that the request was not counted; it comes soon.
func (l *Limits) Take(ctx context.Context, key string, rate telematics.Rate, n int) (telematics.Quota, error) {
	if !l.outage.mayAsk() {
		return telematics.Quota{}, errNotAsked
	}
	ask, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	result, err := l.counter.AllowN(ask, limitKey(key), redis_rate.Limit{Rate: rate.Limit, Burst: rate.Limit, Period: rate.Per}, n)
	if ctx.Err() == nil { // else the caller left, which says nothing of Redis
		l.outage.learn(wrap("count request", err))
	}
	if err != nil {
		return telematics.Quota{}, wrap("count request", err)
	}
	if result.Allowed == 0 {
		return telematics.Quota{Limit: rate.Limit, Over: true, Reset: result.RetryAfter}, nil
	}
	return telematics.Quota{Limit: rate.Limit, Remaining: result.Remaining, Reset: result.ResetAfter}, nil
}
