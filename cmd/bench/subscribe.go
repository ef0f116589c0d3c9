package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/mosquitto"
	"motorpool/telematics"
)

// subscribe is the floor of ingest: a process with the service's MQTT client, subscribed as the service is, that counts
// what comes and does nothing with it. It tells its count in the service's own form.
type subscribe struct {
	Broker   string
	Password string
}

func (s subscribe) Run(ctx context.Context) error {
	var taken atomic.Int64
	client := mqtt.NewClient(clientOptions(s.Broker, "bench-subscriber", mosquitto.ServiceUser, s.Password))
	defer client.Disconnect(0)
	if err := wait(client.Connect()); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	subscribed := client.Subscribe(telematics.SharedFilter("bench", telematics.TelemetryChannel.Filter()), 1, func(mqtt.Client, mqtt.Message) { taken.Add(1) })
	if err := wait(subscribed); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return serveUntil(attended(ctx), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %d\n", samplesOf[reportsTaken][0], taken.Load()) // the caller may leave
	}))
}

// clientOptions are those of the service, see broker.Link.
func clientOptions(broker, id, user, password string) *mqtt.ClientOptions {
	return mqtt.NewClientOptions().AddBroker(broker).SetClientID(id).
		SetUsername(user).SetPassword(password).
		SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).
		SetConnectTimeout(dialTimeout).SetWriteTimeout(400 * time.Millisecond).
		SetKeepAlive(5 * time.Second).SetPingTimeout(2500 * time.Millisecond)
}

func wait(token mqtt.Token) error {
	if !token.WaitTimeout(dialTimeout) {
		return errors.New("no answer")
	}
	return token.Error()
}
