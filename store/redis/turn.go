package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// turnScript gives the turn to the caller where it is free, or the caller's already. KEYS: the
// turn. ARGV: the caller, and for how many ms.
var turnScript = redis.NewScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)

// Turn reports whether it is an instance's turn to do what one instance at a time should do, and
// keeps it for a while. It saves work alone: where Redis loses it, another instance has the turn at
// the same time.
func (db *DB) Turn(ctx context.Context, name, instance string, keep time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	mine, err := turnScript.Run(ctx, db.Client, []string{"motorpool:turn:" + name}, instance, keep.Milliseconds()).Bool()
	return mine, unavailable.Wrap("ask whose turn it is", err)
}
