package redis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// lineKey has the newest history of Postgres that an instance has seen, as a signed text.
const lineKey = "motorpool:postgres"

// lineScript stores a text where the expected one is stored, and returns the stored one. KEYS: the
// line. ARGV: the expected text, and the new one; empty: none. Fields that earlier versions wrote
// are not signed, and not read.
var lineScript = redis.NewScript(`
local stored = redis.call('HGET', KEYS[1], 'signed') or ''
if stored == ARGV[1] and ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'signed', ARGV[2])
  return ARGV[2]
end
return stored
`)

// Line stores the newest history of Postgres. It is safe for concurrent use.
type Line struct{ DB *DB }

// Swap implements pg.SharedLine.
func (l Line) Swap(ctx context.Context, expected, text string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	stored, err := lineScript.Run(ctx, l.DB.Client, []string{lineKey}, expected, text).Text()
	return stored, unavailable.Wrap("read the newest history of postgres", err)
}
