package app

import (
	"context"
	"time"

	"motorpool/broker"
	"motorpool/rental"
	"motorpool/store"
	"motorpool/store/agencykeys"
	"motorpool/telematics"
)

// writeBudget is how long a halt, or a change of an agency's key, may take to be written down.
const writeBudget = 5 * time.Second

// killSwitch changes halts in Postgres. A change is finished even where its caller hangs up.
type killSwitch struct{ *store.Postgres }

// Halt returns once the halt holds at every instance.
func (k killSwitch) Halt(ctx context.Context, h telematics.Halt, by telematics.Author) (telematics.Halt, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	made, known, err := k.Postgres.Halt(ctx, h, by)
	if known && err == nil {
		time.Sleep(broker.HaltWithin)
	}
	return made, known, err
}

// Resume lifts a halt.
func (k killSwitch) Resume(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	return k.Postgres.Resume(ctx, agency, by)
}

// keyRegistry changes the keys of agencies, and returns once the change holds at every instance. A
// change is finished even where its caller hangs up.
type keyRegistry struct{ *agencykeys.Keys }

// Add makes a key.
func (r keyRegistry) Add(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	return held(r.Keys.Add(ctx, agency, by))
}

// Retire lets a key end at a time.
func (r keyRegistry) Retire(ctx context.Context, agency telematics.AgencyID, id string, until time.Time, by telematics.Author) (rental.AgencyKey, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	return held(r.Keys.Retire(ctx, agency, id, until, by))
}

// Revoke ends a key.
func (r keyRegistry) Revoke(ctx context.Context, agency telematics.AgencyID, id string, by telematics.Author) (rental.AgencyKey, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	return held(r.Keys.Revoke(ctx, agency, id, by))
}

// held waits until a change that was made holds everywhere.
func held(key rental.AgencyKey, known bool, err error) (rental.AgencyKey, bool, error) {
	if known && err == nil {
		time.Sleep(agencykeys.Within)
	}
	return key, known, err
}
