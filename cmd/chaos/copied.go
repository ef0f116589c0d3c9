package main

import (
	"context"
	"errors"
	"fmt"

	"motorpool/cmd/chaos/fault"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
)

// copyInstallation is an operator who restores the database for tests, and starts a service on the
// copy, at the same MQTT broker. That it refuses to start, or is not ready, is right.
func (r *round) copyInstallation(ctx context.Context, f fault.Fault) error {
	database, err := r.Postgres.StartStandby(ctx, devstack.StandbyConfig{Dir: r.Path("copied-postgres"), Logger: r.LogFile("copied postgres")})
	if err != nil {
		return err
	}
	err = database.Promote(ctx)
	cache, failure := devstack.StartRedis(r.Path("copied-redis"))
	if err = errors.Join(err, failure); err != nil {
		return errors.Join(err, database.Discard())
	}
	r.InUse.AddURL("password of the copied redis", cache.URL())
	n, err := r.StartInstance(ctx, world.InstanceConfig{Name: "copied instance", DatabaseURL: database.URL(), RedisURL: cache.URL()})
	if err != nil {
		r.Log.Info("the copied installation did not start", "err", err)
	} else {
		r.Running = r.Running[:r.Instances] // it is none of those that must be ready
		world.Pause(ctx, f.For)
		err = n.Kill()
		r.Log.Info("the copied installation was killed", "ready", n.Ready(ctx))
	}
	if failure := errors.Join(cache.Close(), database.Discard()); failure != nil {
		return fmt.Errorf("end the copied installation: %w", failure)
	}
	return nil
}
