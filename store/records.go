package store

import (
	"context"
	"errors"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// recordsSize is the number of vehicles whose records are cached, at up to 1 KB each.
const recordsSize = 1 << 15

// records caches what orders depend on of vehicles, as it was last read here. Its entries do not expire: a claim by one of them checks
// whether it is out of date.
type records struct {
	cached *lru.Cache[telematics.VehicleID, *telematics.Twin]
}

func newRecords() *records {
	cached, err := lru.New[telematics.VehicleID, *telematics.Twin](recordsSize)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &records{cached}
}

// keep caches what vehicles.RecordVersion covers, and the last sign of life, which may be older than what is known, and never newer.
func (r *records) keep(t *telematics.Twin) {
	record := t.ForOrders()
	r.cached.Add(t.ID, &record)
}

func (r *records) find(id telematics.VehicleID) (*telematics.Twin, bool) { return r.cached.Get(id) }

func (r *records) remove(id telematics.VehicleID) { r.cached.Remove(id) }

// Resolve returns what an order depends on: the vehicle's agency, its unit, and what that can do; or a *telematics.Error with
// VehicleNotFound. It may come from the cache, and then be out of date, which Commands.Claim detects.
func (t *Twins) Resolve(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	if twin, cached := t.records.find(id); cached && twin.Version != 0 {
		return *twin, nil
	}
	return t.Record(ctx, id)
}

// Commands is the record of commands of an instance that caches the records of vehicles. It is safe for concurrent use.
type Commands struct {
	*Postgres
	twins *Twins
}

// NewCommands returns the record of commands in Postgres. Its orders were accepted by what the twins returned of their vehicles.
func NewCommands(p *Postgres, t *Twins) *Commands { return &Commands{p, t} }

// Claim is Postgres.Claim for a command whose order may have been accepted by a cached record. Where that is out of date, Claim
// removes it from the cache, has the order accepted anew, and claims the command that accept returns. That was accepted a moment ago, so it is not
// checked again: a record that changes all the time delays no command.
func (c *Commands) Claim(ctx context.Context, command *telematics.Command, accept func() (*telematics.Command, error)) (delivery.Claim, error) {
	claim, err := c.Postgres.Claim(ctx, *command)
	switch {
	case err == nil:
		if claim.Taken() {
			c.confirm(command)
		}
		return claim, nil
	case !errors.Is(err, errStale):
		c.twins.records.remove(command.Vehicle) // it was not confirmed; and the next order fails before it claims
		return claim, err
	}
	c.twins.records.remove(command.Vehicle)
	if command, err = accept(); err != nil {
		return delivery.Claim{}, err
	}
	accepted := *command
	accepted.Version = 0
	return c.Postgres.Claim(ctx, accepted)
}

// confirm refreshes the cached owner of a unit by the cached record that a claim has found to be true: reports are assigned by it.
func (c *Commands) confirm(command *telematics.Command) {
	if twin, cached := c.twins.records.find(command.Vehicle); cached && twin.Version == command.Version {
		c.twins.directory.note(&twin.Vehicle)
	}
}
