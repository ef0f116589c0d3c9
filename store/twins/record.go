package twins

import (
	"context"

	"motorpool/store/pg"
	"motorpool/telematics"
)

// Record returns a vehicle without its reported state, and with the signs of life that Postgres
// has; or a *telematics.Error with VehicleNotFound.
func (t *Twins) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, err := t.readRecord(ctx, id)
	return pg.Deref(twin), err
}

func (t *Twins) readRecord(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	twin, err := t.vehicles.Record(ctx, id)
	if err == nil {
		t.cacheRecord(twin)
	}
	return twin, err
}

// cacheRecord caches the owner of the unit, and what orders depend on: what the record's version
// covers, and the last sign of life, which may be older than the newest, and never newer. Cached
// records do not expire: a claim detects an outdated one.
func (t *Twins) cacheRecord(twin *telematics.Twin) {
	t.owners.add(twin)
	record := twin.ForOrders()
	t.records.Add(twin.ID, &record)
}

// Resolve returns what an order depends on: the vehicle's agency, its unit, and what that can do;
// or a *telematics.Error with VehicleNotFound. It may come from the cache, and then be out of date,
// which a claim detects.
func (t *Twins) Resolve(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	if twin, cached := t.records.Get(id); cached && twin.Version != 0 {
		return twin, nil
	}
	return t.readRecord(ctx, id)
}

// Belongs reports whether a vehicle is an agency's. It reads the record only where that was not so
// when it was last read here: of a vehicle that came to another agency it may still report the
// former one, until a claim has checked the record.
func (t *Twins) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	if twin, cached := t.records.Get(id); cached && twin.AgencyID == agency {
		return true, nil
	}
	twin, err := t.readRecord(ctx, id)
	return err == nil && twin.AgencyID == agency, err
}

// Confirm notes that a claim has found a version of a vehicle's record to be current: reports are
// assigned by it.
func (t *Twins) Confirm(id telematics.VehicleID, version int64) {
	if twin, cached := t.records.Get(id); cached && twin.Version == version {
		t.owners.add(twin)
	}
}

// Forget removes a vehicle's record from the cache, because a claim has found it to be out of date,
// or has failed.
func (t *Twins) Forget(id telematics.VehicleID) { t.records.Remove(id) }
