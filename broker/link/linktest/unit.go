// Package linktest has units for tests over a real MQTT broker.
package linktest

import (
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
)

// The passwords of tests' MQTT brokers.
const ServicePassword, UnitPassword = "service-secret", "unit-secret"

const timeout = time.Minute

// Connect connects a unit until the test ends.
func Connect(t *testing.T, url string, unit telematics.Unit) mqtt.Client {
	t.Helper()
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(url).SetClientID(string(unit)).
		SetUsername(string(unit)).SetPassword(UnitPassword).SetCleanSession(true).SetAutoReconnect(false))
	Await(t, "connect "+string(unit), client.Connect())
	t.Cleanup(func() { client.Disconnect(0) })
	return client
}

// Publish publishes a message and waits for its acknowledgement.
func Publish(t *testing.T, client mqtt.Client, topic string, retained bool, payload string) {
	t.Helper()
	Await(t, "publish "+topic, client.Publish(topic, 1, retained, payload))
}

// Await fails the test where a call of the MQTT client fails, or does not end in time.
func Await(t *testing.T, what string, token mqtt.Token) {
	t.Helper()
	if !token.WaitTimeout(timeout) || token.Error() != nil {
		t.Fatalf("%s: %v", what, token.Error())
	}
}
