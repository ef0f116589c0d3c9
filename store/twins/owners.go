package twins

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/lib/pq"

	"motorpool/guard"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// owner is the vehicle that a unit is built into; zero: none.
type owner struct {
	vehicle    telematics.VehicleID
	agency     telematics.AgencyID
	powertrain telematics.Powertrain
	protocol   telematics.Protocol
	// As in telematics.Twin.
	movedAt, unitMovedAt time.Time
}

// owners caches, for ownerTTL, which vehicles units are built into. Writes to Postgres check that
// again. It is safe for concurrent use.
type owners struct {
	db      *pg.DB
	breaker *unavailable.Breaker

	mu sync.Mutex // one caller at a time queries Postgres
	// Each entry has its own end: an unknown unit is looked up sooner, and while Postgres is
	// unavailable an expired owner counts.
	cached *lru.Cache[telematics.Unit, cachedOwner]
}

// of returns an observation without a report from before the unit or the vehicle was moved, which
// the unit has sent late: it is only a sign of life.
func (o owner) of(seen delivery.Observation) delivery.Observation {
	if seen.Report != nil && seen.Report.At.Before(o.movedAt) {
		seen.Report = nil
	}
	return seen
}

type cachedOwner struct {
	owner
	until time.Time
}

func newOwners(db *pg.DB, log *slog.Logger) *owners {
	return &owners{db: db, cached: newLRU[telematics.Unit, cachedOwner](cachedOwners), breaker: &unavailable.Breaker{
		Opened: "units are not looked up in postgres; cached ones still are found",
		Closed: "units are looked up in postgres again", Log: log,
	}}
}

// newLRU returns an LRU cache. It panics for a size below 1.
func newLRU[K comparable, V any](size int) *lru.Cache[K, V] {
	cached, err := lru.New[K, V](size)
	if err != nil {
		panic(err)
	}
	return cached
}

// find does not note the use of an owner, which would lock the cache: owners that are used are
// added again after ownerTTL, so the one that was not is evicted first all the same.
func (o *owners) find(unit telematics.Unit) (owner, bool) {
	found, ok := o.cached.Peek(unit)
	return found.owner, ok && time.Now().Before(found.until)
}

// findAnswering returns the owner of a unit that answers a request to a vehicle; zero: the unit
// reports unasked. For an answer, an owner as old as the request is good enough: an answer of
// another vehicle's unit does not count.
func (o *owners) findAnswering(unit telematics.Unit, requested telematics.VehicleID) (owner, bool) {
	found, ok := o.cached.Peek(unit)
	if requested != 0 && found.vehicle == requested {
		found.until = found.until.Add(awaitedOwnerTTL)
	}
	return found.owner, ok && time.Now().Before(found.until)
}

// add caches the owner of a unit, from a vehicle that was just read.
func (o *owners) add(v *telematics.Twin) {
	if v.Unit != "" {
		owner := owner{v.ID, v.AgencyID, v.Powertrain, v.Protocol, v.MovedAt, v.UnitMovedAt}
		o.cached.Add(v.Unit, cachedOwner{owner, time.Now().Add(ownerTTL)})
	}
}

// resolve returns the owners of units. While Postgres is unavailable it returns expired owners,
// too; a unit that is not cached is absent.
func (o *owners) resolve(ctx context.Context, units []telematics.Unit) map[telematics.Unit]owner {
	found := make(map[telematics.Unit]owner, len(units))
	missing := o.findAll(units, found)
	if len(missing) == 0 {
		return found
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if missing = o.findAll(missing, found); len(missing) == 0 { // another caller has looked them up
		return found
	}
	fresh, err := o.lookUp(ctx, missing)
	now := time.Now()
	for _, unit := range missing {
		owner, cached := o.cached.Peek(unit)
		switch {
		case err == nil:
			owner = cachedOwner{fresh[unit], now.Add(ownerTTL)}
			if owner.vehicle == 0 {
				owner.until = now.Add(unknownTTL)
			}
		case cached:
			owner.until = now.Add(unavailable.RetryAfter)
		default:
			continue
		}
		o.cached.Add(unit, owner)
		found[unit] = owner.owner
	}
	return found
}

// findAll adds the cached owners of units to found, and returns the other units.
func (o *owners) findAll(units []telematics.Unit, found map[telematics.Unit]owner) (missing []telematics.Unit) {
	for _, unit := range units {
		if owner, ok := o.find(unit); ok {
			found[unit] = owner
		} else {
			missing = append(missing, unit)
		}
	}
	return missing
}

var errNotLookedUp = unavailable.Mark(errors.New("look up units: postgres did not answer a moment ago"))

func (o *owners) lookUp(ctx context.Context, units []telematics.Unit) (map[telematics.Unit]owner, error) {
	if !o.breaker.Allow() {
		return nil, errNotLookedUp
	}
	found, err := o.query(ctx, `where u.serial = any ($1)`, pq.Array(units))
	o.breaker.Record(err)
	return found, err
}

// watchMoves updates the cached owners of units that moved to or from a vehicle lately, or whose
// vehicle moved to another agency, until the context ends.
func (o *owners) watchMoves(ctx context.Context) error {
	var outage guard.Outage
	for guard.Pause(ctx, movesEvery) {
		outage.Note(ctx, o.breaker.Log, "moved vehicles not read", o.updateMoved(ctx))
	}
	return nil
}

// updateMoved reads the moves of the last 15 minutes. That is longer than an import takes, which
// stores the time of a move before it commits.
func (o *owners) updateMoved(ctx context.Context) error {
	moved, err := o.query(ctx, `where u.serial in (
		select serial from units where moved_at > now() - interval '15 minutes' union all
		select m.serial from vehicles w join units m on m.vehicle_id = w.id where w.moved_at > now() - interval '15 minutes')`)
	for unit, owner := range moved {
		o.replace(unit, owner)
	}
	return err
}

// replace updates the owner of a unit that is cached.
func (o *owners) replace(unit telematics.Unit, now owner) {
	if before, cached := o.cached.Peek(unit); cached && before.owner != now {
		ttl := ownerTTL
		if now.vehicle == 0 {
			ttl = unknownTTL
		}
		o.cached.Add(unit, cachedOwner{now, time.Now().Add(ttl)})
	}
}

// query returns the owners of units that meet a condition; zero of those without a vehicle.
func (o *owners) query(ctx context.Context, where string, args ...any) (map[telematics.Unit]owner, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found := map[telematics.Unit]owner{}
	var unit telematics.Unit
	var of owner
	err := pg.Each(ctx, o.db.Prepared, []any{
		&unit, pg.OrZero(&of.vehicle), pg.OrZero(&of.agency), pg.OrZero(&of.powertrain), &of.protocol, pg.UTC(&of.movedAt),
		pg.UTC(&of.unitMovedAt),
	}, func() error {
		if found[unit] = of; of.vehicle == 0 {
			found[unit] = owner{}
		}
		return nil
	}, `
		select u.serial, v.id as vehicle_id, v.agency_id, v.powertrain, u.protocol, `+vehicles.MovedColumns+`
		from units u left join vehicles v on v.id = u.vehicle_id `+where, args...)
	return found, unavailable.Wrap("look up units", err)
}
