package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// leaseScript gives the caller the lease where it is free, or extends the caller's lease. A lease
// that would last for more than twice the duration is free: Redis's clock had leapt. KEYS: the
// lease. ARGV: the caller, and the duration in ms.
var leaseScript = redis.NewScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and redis.call('PTTL', KEYS[1]) <= 2 * ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)

// TryLease takes or extends the lease of a task that one instance at a time should do, and reports
// whether this instance holds it. It only saves work: where Redis loses the key, two instances may
// hold it.
func (db *DB) TryLease(ctx context.Context, name, instance string, keep time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	mine, err := leaseScript.Run(ctx, db.Client, []string{"motorpool:turn:" + name}, instance, keep.Milliseconds()).Bool()
	return mine, unavailable.Wrap("take the lease", err)
}
