package redis

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// sessionKey returns the key of an entry of the console's sign-in.
func sessionKey(key string) string { return "session:motorpool:" + key }

// Sessions stores the console's sessions. It is safe for concurrent use.
type Sessions struct{ db *DB }

// NewSessions returns the sessions in Redis.
func NewSessions(db *DB) Sessions { return Sessions{db: db} }

// Put stores a value for some time.
func (s Sessions) Put(ctx context.Context, key string, value []byte, keep time.Duration) error {
	return unavailable.Wrap("store session", s.db.Client.Set(ctx, sessionKey(key), value, keep).Err())
}

// PutNew implements signin.Store.
func (s Sessions) PutNew(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error) {
	err := s.db.Client.SetArgs(ctx, sessionKey(key), value, redis.SetArgs{Mode: "NX", TTL: keep}).Err()
	if errors.Is(err, redis.Nil) {
		is, err := s.Get(ctx, key)
		return bytes.Equal(is, value), err
	}
	return err == nil, unavailable.Wrap("store session", err)
}

// Get returns a value, or nil.
func (s Sessions) Get(ctx context.Context, key string) ([]byte, error) {
	return found(s.db.Client.Get(ctx, sessionKey(key)))
}

// Delete deletes a value, if there is one.
func (s Sessions) Delete(ctx context.Context, key string) error {
	return unavailable.Wrap("delete session", s.db.Client.Del(ctx, sessionKey(key)).Err())
}

// swapScript replaces (a value, milliseconds) or deletes (an empty value) an entry that has the old
// value. It returns whether the entry now has the new one.
var swapScript = redis.NewScript(`
local now = redis.call('GET', KEYS[1]) or ''
if now == ARGV[1] and ARGV[2] == '' then
	redis.call('DEL', KEYS[1])
elseif now == ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
elseif now ~= ARGV[2] then
	return 0
end
return 1`)

// Swap implements signin.Store.
func (s Sessions) Swap(ctx context.Context, key string, old, value []byte, keep time.Duration) (bool, error) {
	swapped, err := swapScript.Run(ctx, s.db.Client, []string{sessionKey(key)}, old, value, max(keep.Milliseconds(), 1)).Bool()
	return swapped, unavailable.Wrap("swap session", err)
}

func found(reply *redis.StringCmd) ([]byte, error) {
	value, err := reply.Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return value, unavailable.Wrap("read session", err)
}
