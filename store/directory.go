package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/lib/pq"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

const (
	directorySize = 1 << 17 // units, known and unknown
	// directoryFor is how long an instance may not know that a unit was built into another vehicle, but for the answers to what its vehicle
	// was asked until then.
	directoryFor = 10 * time.Second
	lookUpFor    = time.Second
	strangerFor  = 2 * time.Second // or that it was built into one at all
	// moveEvery is how often an instance looks for vehicles that came to another agency: the former one must not hear of them any more.
	moveEvery = time.Second
)

// owner is the vehicle that a unit is built into; zero: none.
type owner struct {
	vehicle    telematics.VehicleID
	agency     telematics.AgencyID
	powertrain telematics.Powertrain
	protocol   telematics.Protocol
}

// directory remembers for a while which vehicles units are built into. What is durable
// does not go by it.
type directory struct {
	postgres *Postgres
	outage   *unavailable.Breaker

	mu    sync.Mutex // lets one at a time ask Postgres
	known *lru.Cache[telematics.Unit, entry]
}

type entry struct {
	owner
	until time.Time
}

func newDirectory(p *Postgres, log *slog.Logger) *directory {
	known, err := lru.New[telematics.Unit, entry](directorySize)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &directory{postgres: p, known: known, outage: &unavailable.Breaker{
		Opened: "units are not looked up in postgres; those that were known still are",
		Closed: "units are looked up in postgres again", Log: log,
	}}
}

// owner returns that of a unit, if it is remembered.
func (d *directory) owner(unit telematics.Unit) (owner, bool) {
	known, ok := d.known.Get(unit)
	return known.owner, ok && time.Now().Before(known.until)
}

// askedOwner returns that of a unit that answers what its vehicle was asked. Whose it was when it was asked is good enough for that: that of
// another vehicle does not count.
func (d *directory) askedOwner(unit telematics.Unit, vehicle telematics.VehicleID) (owner, bool) {
	known, ok := d.known.Peek(unit)
	return known.owner, ok && vehicle != 0 && known.vehicle == vehicle && time.Now().Before(known.until.Add(telematics.MaxBudget))
}

// note remembers whose unit was just read: who orders something hears of it soon.
func (d *directory) note(v *telematics.Vehicle) {
	if v.Unit != "" {
		o := owner{vehicle: v.ID, agency: v.AgencyID, powertrain: v.Powertrain, protocol: v.Protocol}
		d.known.Add(v.Unit, entry{owner: o, until: time.Now().Add(directoryFor)})
	}
}

// owners returns the owners of units. While Postgres is away what was known stands, and a
// unit that was never looked up is absent.
func (d *directory) owners(ctx context.Context, units []telematics.Unit) map[telematics.Unit]owner {
	found, stale := d.remembered(units)
	if len(stale) == 0 {
		return found
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	again, stale := d.remembered(stale) // another caller may have asked meanwhile
	for unit, o := range again {
		found[unit] = o
	}
	if len(stale) == 0 {
		return found
	}
	fresh, err := d.ask(ctx, stale)
	now := time.Now()
	for _, unit := range stale {
		known, remembered := d.known.Peek(unit)
		switch {
		case err == nil:
			known = entry{owner: fresh[unit], until: now.Add(directoryFor)}
			if known.vehicle == 0 {
				known.until = now.Add(strangerFor)
			}
		case remembered:
			known.until = now.Add(unavailable.RetryAfter)
		default:
			continue
		}
		d.known.Add(unit, known)
		found[unit] = known.owner
	}
	return found
}

var errNotLookedUp = unavailable.Mark(errors.New("look up units: postgres did not answer a moment ago"))

func (d *directory) ask(ctx context.Context, units []telematics.Unit) (map[telematics.Unit]owner, error) {
	if !d.outage.Allow() {
		return nil, errNotLookedUp
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpFor)
	defer cancel()
	found, err := d.postgres.owners(ctx, units)
	d.outage.Record(err)
	return found, err
}

func (d *directory) remembered(units []telematics.Unit) (found map[telematics.Unit]owner, stale []telematics.Unit) {
	found = make(map[telematics.Unit]owner, len(units))
	for _, unit := range units {
		if known, ok := d.owner(unit); ok {
			found[unit] = known
			continue
		}
		stale = append(stale, unit)
	}
	return found, stale
}

// watchMoves updates the owners of vehicles that came to another agency lately, until the context ends.
func (d *directory) watchMoves(ctx context.Context) {
	every := time.NewTicker(moveEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if err := d.updateMoved(ctx); err != nil && ctx.Err() == nil && !d.outage.IsOpen() {
			d.outage.Log.Warn("moved vehicles not read, retrying", "err", err)
		}
	}
}

func (d *directory) updateMoved(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookUpFor)
	defer cancel()
	moved, err := d.postgres.movedOwners(ctx)
	for unit, o := range moved {
		if known, cached := d.known.Peek(unit); cached && known.owner != o {
			d.known.Add(unit, entry{owner: o, until: time.Now().Add(directoryFor)})
		}
	}
	return err
}

// owners returns the vehicles that units are built into; units without one are absent.
func (p *Postgres) owners(ctx context.Context, units []telematics.Unit) (map[telematics.Unit]owner, error) {
	serials := make([]string, len(units))
	for i, unit := range units {
		serials[i] = string(unit)
	}
	var rows []ownerRow
	err := p.Prepared.Select(ctx, &rows, selectOwners+` where u.serial = any ($1)`, pq.Array(serials))
	return ownersByUnit(rows), unavailable.Wrap("look up units", err)
}

// movedOwners returns the owners of vehicles that came to another agency in the last quarter of an hour: an import notes the time
// before it commits, so the window is longer than an import takes.
func (p *Postgres) movedOwners(ctx context.Context) (map[telematics.Unit]owner, error) {
	var rows []ownerRow
	err := p.Prepared.Select(ctx, &rows, selectOwners+` where v.moved_at > now() - interval '15 minutes'`)
	return ownersByUnit(rows), unavailable.Wrap("look up moved vehicles", err)
}

type ownerRow struct {
	Serial     string `db:"serial"`
	VehicleID  int64  `db:"vehicle_id"`
	AgencyID   int64  `db:"agency_id"`
	Powertrain string `db:"powertrain"`
	Protocol   string `db:"protocol"`
}

const selectOwners = `
		select u.serial, v.id as vehicle_id, v.agency_id, v.powertrain, u.protocol
		from units u join vehicles v on v.id = u.vehicle_id`

func ownersByUnit(rows []ownerRow) map[telematics.Unit]owner {
	found := make(map[telematics.Unit]owner, len(rows))
	for _, row := range rows {
		found[telematics.Unit(row.Serial)] = owner{
			vehicle: telematics.VehicleID(row.VehicleID), agency: telematics.AgencyID(row.AgencyID),
			powertrain: telematics.Powertrain(row.Powertrain), protocol: telematics.Protocol(row.Protocol),
		}
	}
	return found
}
