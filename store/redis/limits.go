package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/groupcommit"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// limitKey names the entry of a limit.
func limitKey(key string) string { return "rate:motorpool:" + key }

var errNotCounted = unavailable.Mark(errors.New("count request: redis did not answer a moment ago"))

// Limits counts requests in Redis, for all instances together. While Redis is unavailable requests
// pass uncounted. It is safe for concurrent use.
type Limits struct {
	db *DB
	// From limits whose entries are in one place.
	takes   *groupcommit.Batcher[[]telematics.Limit, taken]
	timeout time.Duration
	breaker *unavailable.Breaker
}

// taken is the result of one request.
type taken struct {
	quotas []telematics.Quota
	err    error
}

// NewLimits returns the counts in Redis.
func NewLimits(db *DB) *Limits {
	l := &Limits{db: db, timeout: ReadTimeout, breaker: &unavailable.Breaker{
		Opened: "requests pass without being counted against their limits",
		Closed: "requests are counted against their limits again", Log: db.Log,
	}}
	l.takes = groupcommit.New(groupcommit.Limits{MaxBatch: tripBatch, Timeout: ReadTimeout}, l.takeEach)
	return l
}

// takeScript takes from limits in their order, and stops at the first that has too little left,
// from which it takes nothing. It is the generic cell rate algorithm by Redis's clock. The entry of
// a limit holds when all of it is there again, in seconds since 2017: that keeps the digits of
// microseconds in a double.
//
// KEYS: the entries. ARGV: for each entry its limit, the limit's time in seconds, and the cost. It
// returns for each entry up to the first that has too little: whether the cost was taken, how many
// more would pass, and the seconds until the whole limit is there again or, of one that has too
// little, until the cost would be.
var takeScript = redis.NewScript(`
local now = redis.call('TIME')
now = (now[1] - 1483228800) + now[2] / 1000000
local quotas = {}
for i, key in ipairs(KEYS) do
  local limit, cost = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i])
  local interval = tonumber(ARGV[3 * i - 1]) / limit
  local full = math.max(tonumber(redis.call('GET', key) or now), now) + interval * cost
  local left = now - (full - interval * limit)
  if left < 0 then
    quotas[i] = {0, 0, tostring(-left)}
    break
  end
  if full > now then
    redis.call('SET', key, full, 'EX', math.ceil(full - now))
  end
  quotas[i] = {1, left / interval, tostring(full - now)}
end
return quotas
`)

// Take takes from limits in their order, and stops at the first that has too little left, from
// which it takes nothing. It returns the quotas of the limits up to that one. What is unused of a
// limit adds up, to its rate. An error says that not all were counted; it comes soon. It is one
// trip to Redis, in a cluster one for each limit: their entries are at different masters.
func (l *Limits) Take(ctx context.Context, limits ...telematics.Limit) ([]telematics.Quota, error) {
	if !l.breaker.Allow() {
		return nil, errNotCounted
	}
	ask, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	quotas, err := l.take(ask, limits)
	if ctx.Err() == nil { // else the caller left, which says nothing of Redis
		l.breaker.Record(unavailable.Wrap("count request", err))
	}
	return quotas, unavailable.Wrap("count request", err)
}

func (l *Limits) take(ctx context.Context, limits []telematics.Limit) ([]telematics.Quota, error) {
	if !l.db.isCluster() {
		return l.takeTogether(ctx, limits)
	}
	var quotas []telematics.Quota
	for i := range limits {
		quota, err := l.takeTogether(ctx, limits[i:i+1])
		if err != nil {
			return nil, err
		}
		quotas = append(quotas, quota...)
		if quota[0].Over {
			break
		}
	}
	return quotas, nil
}

// takeTogether takes from limits whose entries are in one place, in one trip with other requests
// that come at the same time.
func (l *Limits) takeTogether(ctx context.Context, limits []telematics.Limit) ([]telematics.Quota, error) {
	taken, err := l.takes.Do(ctx, limits)
	return taken.quotas, cmp.Or(err, taken.err)
}

// takeEach runs the script for each request, in one trip.
func (l *Limits) takeEach(ctx context.Context, requests [][]telematics.Limit) ([]taken, error) {
	calls := make([]ScriptCall, len(requests))
	for i, limits := range requests {
		for _, limit := range limits {
			calls[i].Keys = append(calls[i].Keys, limitKey(limit.Key))
			calls[i].Args = append(calls[i].Args, limit.Rate.Limit, limit.Rate.Per.Seconds(), limit.Cost)
		}
	}
	replies, err := l.db.RunScript(ctx, takeScript, calls)
	if err != nil {
		return nil, err
	}
	results := make([]taken, len(requests))
	for i, reply := range replies {
		results[i].quotas, results[i].err = decodeQuotas(requests[i], reply)
	}
	return results, nil
}

func decodeQuotas(limits []telematics.Limit, reply *redis.Cmd) ([]telematics.Quota, error) {
	rows, err := reply.Slice()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows) > len(limits) {
		return nil, fmt.Errorf("%d quotas of %d limits", len(rows), len(limits))
	}
	quotas := make([]telematics.Quota, len(rows))
	for i, row := range rows {
		if quotas[i], err = decodeQuota(limits[i].Rate, row); err != nil {
			return nil, err
		}
	}
	return quotas, nil
}

// decodeQuota decodes what the script returned of a limit.
func decodeQuota(rate telematics.Rate, row any) (telematics.Quota, error) {
	values, _ := row.([]any)
	if len(values) != 3 {
		return telematics.Quota{}, fmt.Errorf("quota %v", row)
	}
	taken, _ := values[0].(int64)
	remaining, _ := values[1].(int64)
	seconds, _ := values[2].(string)
	reset, err := strconv.ParseFloat(seconds, 64)
	return telematics.Quota{
		Limit: rate.Limit, Remaining: int(remaining), Over: taken == 0, Reset: time.Duration(reset * float64(time.Second)),
	}, err
}
