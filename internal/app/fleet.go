package app

import (
	"context"

	"motorpool/store/activity"
	"motorpool/store/commands"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// fleet reads vehicles with their present reported state, and everything else from Postgres.
type fleet struct {
	*vehicles.Fleet
	*commands.Store
	*activity.Log
	twins *twins.Twins
}

// Twin returns a vehicle with its present reported state. No later read returns less.
func (f fleet) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.twins.DurableTwin(ctx, id)
}

// Record returns a vehicle without its reported state.
func (f fleet) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.twins.Record(ctx, id)
}

// Belongs reports whether a vehicle is an agency's, by a record that may be older than an order:
// see twins.Twins.
func (f fleet) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	return f.twins.Belongs(ctx, id, agency)
}

// Twins returns vehicles with their present reported states.
func (f fleet) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	return f.twins.Twins(ctx, q)
}
