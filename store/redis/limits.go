package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/groupcommit"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// limitKey returns the key of a limit's entry.
func limitKey(key string) string { return "rate:motorpool:" + key }

var errNotCounted = unavailable.Mark(errors.New("count request: redis did not answer a moment ago"))

// Limits counts requests in Redis, for all instances together. While Redis is unavailable requests
// pass uncounted. It is safe for concurrent use.
type Limits struct {
	db *DB
	// Requests against limits whose entries are on one master.
	takes   *groupcommit.Batcher[[]telematics.Limit, takeResult]
	timeout time.Duration
	breaker *unavailable.Breaker
}

// takeResult is the result of one request.
type takeResult struct {
	quotas []telematics.Quota
	err    error
}

// NewLimits returns the counts in Redis.
func NewLimits(db *DB) *Limits {
	l := &Limits{db: db, timeout: ReadTimeout, breaker: &unavailable.Breaker{
		Opened: "requests pass without being counted against their limits",
		Closed: "requests are counted against their limits again", Log: db.Log,
	}}
	l.takes = groupcommit.New(groupcommit.Limits{MaxBatch: tripBatch, Timeout: ReadTimeout, Guard: db.Guard}, l.takeEach)
	return l
}

// takeScript takes, for each of several requests, from limits in their order, and stops at the
// first that has too little left, from which it takes nothing. It is the generic cell rate
// algorithm by Redis's clock. The entry of a limit holds when all of it is there again, in seconds
// since 2017: that keeps the digits of microseconds in a double. A later entry than there can be
// (that clock had leapt) counts as an exhausted limit.
//
// KEYS: the entries, request by request. ARGV: for each request the number of its entries, and for
// each of them its limit, the limit's time in seconds, and the cost. It returns for each request a
// list, with each entry up to the first that has too little: whether the cost was taken, how many
// more would pass, and the seconds until the whole limit is there again or, of one that has too
// little, until the cost would be.
var takeScript = redis.NewScript(`
local now = redis.call('TIME')
now = (now[1] - 1483228800) + now[2] / 1000000
local entries, changed, requests = {}, {}, {}
local rounding = 1e-3 -- else 599 may be 598.9999
local k, a = 0, 1
while ARGV[a] do
  local quotas, count = {}, tonumber(ARGV[a])
  for i = 1, count do
    local key, limit, cost = KEYS[k + i], tonumber(ARGV[a + 3 * i - 2]), tonumber(ARGV[a + 3 * i])
    local interval = tonumber(ARGV[a + 3 * i - 1]) / limit
    entries[key] = entries[key] or math.min(math.max(tonumber(redis.call('GET', key) or now), now), now + interval * limit)
    local full = entries[key] + interval * cost
    local left = now - (full - interval * limit)
    if left < 0 then
      quotas[i] = {0, 0, tostring(-left)}
      break
    end
    if full > now then
      entries[key], changed[key] = full, true
    end
    quotas[i] = {1, math.floor(left / interval + rounding), tostring(full - now)}
  end
  requests[#requests + 1] = quotas
  k, a = k + count, a + 3 * count + 1
end
for key in pairs(changed) do
  redis.call('SET', key, entries[key], 'EX', math.ceil(entries[key] - now))
end
return requests
`)

// Take implements request.Limiter. An unused limit refills at its rate, up to its maximum. It is
// one round trip to Redis, in a cluster one for each limit: their entries may be on different
// masters.
func (l *Limits) Take(ctx context.Context, limits ...telematics.Limit) ([]telematics.Quota, error) {
	if !l.breaker.Allow() {
		return nil, errNotCounted
	}
	ask, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	quotas, err := l.take(ask, limits)
	if ctx.Err() == nil { // else the caller left, which does not mean that Redis failed
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

// takeTogether takes from limits whose entries are on one master, in one round trip with other
// requests that come at the same time.
func (l *Limits) takeTogether(ctx context.Context, limits []telematics.Limit) ([]telematics.Quota, error) {
	taken, err := l.takes.Do(ctx, limits)
	return taken.quotas, cmp.Or(err, taken.err)
}

// takeEach runs the script in one round trip: once for all requests, in a cluster once for each.
func (l *Limits) takeEach(ctx context.Context, requests [][]telematics.Limit) ([]takeResult, error) {
	together := len(requests)
	if l.db.isCluster() {
		together = 1
	}
	var calls []ScriptCall
	for group := range slices.Chunk(requests, together) {
		var call ScriptCall
		for _, limits := range group {
			call.Args = append(call.Args, len(limits))
			for _, limit := range limits {
				call.Keys = append(call.Keys, limitKey(limit.Key))
				call.Args = append(call.Args, limit.Rate.Limit, limit.Rate.Per.Seconds(), limit.Cost)
			}
		}
		calls = append(calls, call)
	}
	replies := l.db.RunScript(ctx, takeScript, calls)
	results := make([]takeResult, len(requests))
	for i, limits := range requests {
		results[i].quotas, results[i].err = decodeQuotas(limits, replies[i/together], i%together)
	}
	return results, nil
}

// decodeQuotas decodes the script's result for its nth request.
func decodeQuotas(limits []telematics.Limit, reply *redis.Cmd, n int) ([]telematics.Quota, error) {
	requests, err := reply.Slice()
	if err != nil {
		return nil, err
	}
	var rows []any
	if n < len(requests) {
		rows, _ = requests[n].([]any)
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

// decodeQuota decodes the script's result for a limit.
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
