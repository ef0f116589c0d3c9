package app

import (
	"context"
	"time"

	"motorpool/broker"
	"motorpool/rental"
	shapes "motorpool/rental/areas"
	"motorpool/store/agencykeys"
	"motorpool/store/areas"
	"motorpool/store/commands"
	"motorpool/telematics"
)

// writeBudget is how long a halt, or a change of an agency's keys or areas, may take to be stored.
const writeBudget = 5 * time.Second

// finish completes a change even if its caller disconnects, and returns after holdsWithin, when
// every instance applies it.
func finish[T any](ctx context.Context, holdsWithin time.Duration, change func(context.Context) (T, bool, error)) (T, bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	made, exists, err := change(ctx)
	if exists && err == nil {
		time.Sleep(holdsWithin)
	}
	return made, exists, err
}

// waitingHalts changes halts in Postgres, and waits until a new one holds at every instance.
type waitingHalts struct{ commands.HaltStore }

// Halt returns once the halt holds at every instance.
func (k waitingHalts) Halt(ctx context.Context, h telematics.Halt, by telematics.Author) (telematics.Halt, bool, error) {
	return finish(ctx, broker.HaltWithin, func(ctx context.Context) (telematics.Halt, bool, error) { return k.HaltStore.Halt(ctx, h, by) })
}

// Resume lifts a halt. It does not wait for the instances.
func (k waitingHalts) Resume(ctx context.Context, agency telematics.AgencyID, why string, by telematics.Author) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeBudget)
	defer cancel()
	return k.HaltStore.Resume(ctx, agency, why, by)
}

// keyRegistry changes the keys of agencies.
type keyRegistry struct{ *agencykeys.Keys }

// Add makes a key, and returns once every instance applies it.
func (r keyRegistry) Add(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error) {
	return finish(ctx, agencykeys.Within, func(ctx context.Context) (rental.AgencyKey, bool, error) { return r.Keys.Add(ctx, agency, by) })
}

// Retire sets the time at which a key ends, and returns once every instance applies it.
func (r keyRegistry) Retire(
	ctx context.Context, agency telematics.AgencyID, id string, until time.Time, by telematics.Author,
) (rental.AgencyKey, bool, error) {
	return finish(ctx, agencykeys.Within, func(ctx context.Context) (rental.AgencyKey, bool, error) {
		return r.Keys.Retire(ctx, agency, id, until, by)
	})
}

// Revoke ends a key, and returns once every instance applies it.
func (r keyRegistry) Revoke(
	ctx context.Context, agency telematics.AgencyID, id string, by telematics.Author,
) (rental.AgencyKey, bool, error) {
	return finish(
		ctx, agencykeys.Within,
		func(ctx context.Context) (rental.AgencyKey, bool, error) { return r.Keys.Revoke(ctx, agency, id, by) },
	)
}

// areaRegistry changes the areas of agencies.
type areaRegistry struct{ *areas.Areas }

// Put carries out a change, and returns once every instance applies it.
func (r areaRegistry) Put(ctx context.Context, change shapes.Change) (now shapes.Placed, added bool, err error) {
	now, _, err = finish(ctx, areas.Within, func(ctx context.Context) (shapes.Placed, bool, error) {
		now, is, err := r.Areas.Put(ctx, change)
		added = is
		return now, true, err
	})
	return now, added, err
}
