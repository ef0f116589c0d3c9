package redis

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// lineKey has the newest history of Postgres that an instance has seen.
const lineKey = "motorpool:postgres"

// lineScript stores a line where it replaces the stored one, and returns the stored one. KEYS: the
// line. ARGV: its system, empty for none, and its timeline.
var lineScript = redis.NewScript(`
local system, timeline = unpack(redis.call('HMGET', KEYS[1], 'system', 'timeline'))
if ARGV[1] ~= '' and (not system or system == ARGV[1] and tonumber(ARGV[2]) > tonumber(timeline)) then
  redis.call('HSET', KEYS[1], 'system', ARGV[1], 'timeline', ARGV[2])
  return {ARGV[1], ARGV[2]}
end
return {system or '', timeline or '0'}
`)

// Line stores the newest history of Postgres. It is safe for concurrent use.
type Line struct{ DB *DB }

// Newest stores a line where none is stored, or an older timeline of the same system, and returns
// what is stored then. An empty system is not stored, and means that none is.
func (l Line) Newest(ctx context.Context, system string, timeline int64) (string, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	stored, err := lineScript.Run(ctx, l.DB.Client, []string{lineKey}, system, timeline).StringSlice()
	if err == nil {
		timeline, err = strconv.ParseInt(stored[1], 10, 64)
	}
	if err != nil {
		return "", 0, unavailable.Wrap("read the newest history of postgres", err)
	}
	return stored[0], timeline, nil
}
