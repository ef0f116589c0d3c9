package main

import (
	"context"
	"fmt"

	"motorpool/cmd/internal/service"
)

// instance is a process of the service. Between it and everything else lies a line.
type instance struct {
	*service.Instance
	callers string // URL of the API, by the callers' line
}

func (w *world) startInstance(ctx context.Context, i int) (*instance, error) {
	var servers [3]string
	for k, l := range []struct{ name, to string }{
		{lineOf(i, mosquittoServer), w.mosquitto.ServiceURL()},
		{lineOf(i, redisServer), w.redis.URL()},
		{lineOf(i, postgresServer), w.postgres.URL()},
	} {
		var err error
		if servers[k], err = w.lines.Add(l.name, l.to); err != nil {
			return nil, err
		}
	}
	started, err := service.Start(ctx, service.Config{
		Name: instanceName(i), Binary: w.Binary, Dir: w.dir,
		MQTTURL: servers[0], MQTTPassword: servicePassword, RedisURL: servers[1], DatabaseURL: servers[2],
		SigningKeys: w.path("signing.jwks"), TokenKeys: w.path("tokens.jwks"), TokenIssuer: tokenIssuer,
		Settings: []string{"MOTORPOOL_BUDGET=" + budget.String(), clockFaultFile + "=" + w.clockFile(i), "MOTORPOOL_AGENCY_SECRETS_KEY=" + w.app.sealing},
		Logger:   w.logFile(fmt.Sprintf("instance-%d", i)),
	})
	if err != nil {
		return nil, err
	}
	w.later(started.Close)
	n := &instance{Instance: started}
	n.callers, err = w.lines.Add(callersLine(i), n.Public)
	return n, err
}
