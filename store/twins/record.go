package twins

import (
	"context"

	"motorpool/store/pg"
	"motorpool/telematics"
)

// Record reads a vehicle from Postgres, with its contact and without its reported state. It returns
// a *telematics.Error with VehicleNotFound where there is none.
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

// cacheRecord caches the owner of the unit, and the fields that orders depend on: those that the
// version covers, and the last sign of life, which may be outdated. Cached records do not expire: a
// claim detects an outdated one.
func (t *Twins) cacheRecord(twin *telematics.Twin) {
	t.owners.add(twin)
	record := twin.ForOrders()
	t.records.Add(twin.ID, &record)
}

// Resolve implements broker.Vehicles.
func (t *Twins) Resolve(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	if twin, cached := t.records.Get(id); cached && twin.Version != 0 {
		return twin, nil
	}
	return t.readRecord(ctx, id)
}

// Belongs implements request.Vehicles. It reads Postgres only where the cached vehicle does not
// belong to the agency.
func (t *Twins) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	if twin, cached := t.records.Get(id); cached && twin.AgencyID == agency {
		return true, nil
	}
	twin, err := t.readRecord(ctx, id)
	return err == nil && twin.AgencyID == agency, err
}

// Confirm notes that a claim has found the cached version of a vehicle to be current. That renews
// the owner of its unit, by which reports are assigned.
func (t *Twins) Confirm(id telematics.VehicleID, version int64) {
	if twin, cached := t.records.Get(id); cached && twin.Version == version {
		t.owners.add(twin)
	}
}

// Forget removes a vehicle from the cache, because a claim has found it to be out of date, or has
// failed.
func (t *Twins) Forget(id telematics.VehicleID) { t.records.Remove(id) }
