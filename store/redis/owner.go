package redis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/store/unavailable"
)

// ownerKey has the claim of the installation that uses this database of Redis.
const ownerKey = "motorpool:installation"

// Place is the claims of installations to this database of Redis. Until Admit, every other call
// fails, as if Redis were unavailable: two installations would overwrite each other's data.
type Place struct {
	db   *DB
	gate *gate
}

// NewPlace closes the database until Place.Admit. Call it before the database is used.
func NewPlace(db *DB) *Place {
	p := &Place{db: db, gate: &gate{}}
	p.Admit(errors.New("not admitted yet"))
	db.Client.AddHook(p.gate)
	return p
}

// Exchange writes a claim, or only looks where the instance asks. It returns the claim that was
// there.
func (p *Place) Exchange(ctx context.Context, claim string, asks bool) (heard, asked []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, pass{}, true), tripTimeout)
	defer cancel()
	pipe := p.db.Client.Pipeline()
	found := pipe.Get(ctx, ownerKey)
	if !asks {
		pipe.Set(ctx, ownerKey, claim, ownedFor)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, unavailable.Wrap("claim redis", err)
	}
	if found.Err() == nil {
		heard = []string{found.Val()}
	}
	return heard, nil, nil
}

// notAdmitted is the error of a call that is refused.
type notAdmitted struct{ error }

func (e notAdmitted) Unwrap() error { return e.error }

// NotAdmitted reports whether a call was refused before it reached Redis: see [Place.Admit], whose
// caller logs why.
func NotAdmitted(err error) bool { return errors.As(err, &notAdmitted{}) }

// Admit lets calls through, or refuses them for a reason.
func (p *Place) Admit(why error) {
	if why != nil {
		why = notAdmitted{unavailable.Mark(why)}
	}
	p.gate.closed.Store(&why)
}

// Patience is zero: Redis answers itself.
func (p *Place) Patience() time.Duration { return 0 }

// gate refuses calls.
type gate struct{ closed atomic.Pointer[error] }

// pass is the key of contexts of calls that are let through.
type pass struct{}

func (g *gate) check(ctx context.Context) error {
	why := *g.closed.Load()
	if why == nil || ctx.Value(pass{}) != nil {
		return nil
	}
	return why
}

// DialHook implements redis.Hook.
func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return next(ctx, network, address)
	}
}

// ProcessHook implements redis.Hook.
func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if err := g.check(ctx); err != nil {
			command.SetErr(err)
			return err
		}
		return next(ctx, command)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		if err := g.check(ctx); err != nil {
			for _, command := range commands {
				command.SetErr(err)
			}
			return err
		}
		return next(ctx, commands)
	}
}
