package world

import (
	"context"

	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// ServersConfig says how the servers differ from those of production.
type ServersConfig struct {
	Units   []telematics.Unit // that may connect to Mosquitto, with UnitPassword
	Watcher bool              // Mosquitto has the account devstack.WatcherUser, with ServicePassword
	Gateway bool              // Mosquitto has the account devstack.GatewayUser, with ServicePassword
	Fsync   bool              // Postgres waits for the disk at each commit
}

// StartServers starts Mosquitto, Redis and Postgres, each with a folder in that of the world, and returns when they serve. Close discards
// their data.
func (w *World) StartServers(ctx context.Context, c ServersConfig) error {
	config := devstack.MosquittoConfig{
		Dir: w.Path("mosquitto"), Units: map[string]string{}, ServicePassword: w.ServicePassword, Logger: w.LogFile("mosquitto"),
	}
	for _, unit := range c.Units {
		config.Units[string(unit)] = w.UnitPassword(unit)
	}
	if c.Watcher {
		config.WatcherPassword = w.ServicePassword
	}
	if c.Gateway {
		config.GatewayPassword = w.ServicePassword
	}
	var err error
	if w.Mosquitto, err = devstack.StartMosquitto(config); err != nil {
		return err
	}
	w.OnClose(w.Mosquitto.Close)
	if w.Redis, err = devstack.StartRedis(w.Path("redis")); err != nil {
		return err
	}
	w.OnClose(w.Redis.Close)
	if w.Postgres, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{
		Dir: w.Path("postgres"), Fsync: c.Fsync, Logger: w.LogFile("postgres"),
	}); err != nil {
		return err
	}
	w.OnClose(w.Postgres.Discard)
	return nil
}
