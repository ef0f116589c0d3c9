package world

import (
	"context"
	"fmt"
	"time"

	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/store/agencykeys"
	"motorpool/store/pg"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// storeTimeout bounds a call to Postgres, generously, for a busy machine.
const storeTimeout = time.Minute

// Vehicle returns an available vehicle that can do everything.
func Vehicle(id int, agency telematics.AgencyID, unit telematics.Unit) telematics.Vehicle {
	return telematics.Vehicle{
		ID: telematics.VehicleID(id), AgencyID: agency, Unit: unit, Status: telematics.Available,
		Powertrain: telematics.Combustion, Plate: fmt.Sprintf("T-ST %d", id), Actions: telematics.ControlActions,
	}
}

// Units returns the units of vehicles.
func Units(vehicles []telematics.Vehicle) []telematics.Unit {
	units := make([]telematics.Unit, len(vehicles))
	for i, v := range vehicles {
		units[i] = v.Unit
	}
	return units
}

// AllConnected waits until all cars of a fleet are connected.
func AllConnected(ctx context.Context, cars *simulator.Fleet) error {
	return Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool { return cars.Connected() == len(cars.Cars()) })
}

// Migrate creates the database's schema, or brings it up to date.
func (w *World) Migrate(ctx context.Context) error {
	return w.WithStore(func(db *pg.DB) error {
		_, err := db.Migrate(ctx)
		return err
	})
}

// Import stores agencies, stations and vehicles. The schema must be there.
func (w *World) Import(ctx context.Context, fleet vehicles.FleetFile) error {
	return w.WithStore(func(db *pg.DB) error {
		_, err := vehicles.New(db).Import(ctx, fleet)
		return err
	})
}

// AddAgencyKey creates a key with which the app of an agency signs requests.
func (w *World) AddAgencyKey(ctx context.Context, agency telematics.AgencyID) (key rental.AgencyKey, err error) {
	sealer, err := agencykeys.NewSealer(w.AgencySecrets)
	if err != nil {
		return key, err
	}
	err = w.WithStore(func(db *pg.DB) error {
		key, _, err = agencykeys.New(db, sealer).Add(ctx, agency, telematics.OperatorAt("world"))
		return err
	})
	w.InUse.AddBytes("secret of agency key "+key.ID, key.Secret)
	return key, err
}

// WithStore calls a function with a connection to Postgres that does not use the service's.
func (w *World) WithStore(do func(*pg.DB) error) error {
	db, err := pg.New(pg.Config{URL: w.Postgres.URL(), Timeout: storeTimeout})
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}
