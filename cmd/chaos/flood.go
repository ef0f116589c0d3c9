package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"

	"motorpool/cmd/chaos/audit"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

// The unit that floods has a separate vehicle, which gets no commands.
const (
	floodUnit   = telematics.Unit("flood")
	floodLength = 8 * time.Second
	floodTick   = 10 * time.Millisecond
	// floodCallers order during the flood, one after another: few enough for a machine that the flood keeps busy.
	floodCallers = 12
)

// floodRates are messages a second, as far as the machine can.
var floodRates = map[telematics.Channel]int{telematics.AckChannel: 12_000, telematics.TelemetryChannel: 3000, telematics.PresenceChannel: 1000}

// flood lets one unit publish far more than it may, while nothing else goes wrong, and orders things of the other cars.
func (w *world) flood(ctx context.Context, l *load) (audit.Flood, error) {
	if err := w.heal(ctx); err != nil {
		return audit.Flood{}, err
	}
	pause(ctx, aftermath)
	client := paho.NewClient(paho.NewClientOptions().AddBroker(w.mosquitto.UnitsURL()).SetClientID(string(floodUnit)).SetUsername(string(floodUnit)).
		SetPassword(mosquitto.UnitPassword(unitSecret, string(floodUnit))).SetCleanSession(true).SetAutoReconnect(false))
	if token := client.Connect(); !token.WaitTimeout(mqttPatience) || token.Error() != nil {
		return audit.Flood{}, fmt.Errorf("flood: connect: %w", token.Error())
	}
	defer client.Disconnect(0)
	before := w.limited(ctx)
	flooding, stop := context.WithTimeout(ctx, floodLength)
	defer stop()
	f := audit.Flood{Interval: audit.Interval{From: time.Now()}}
	var all sync.WaitGroup
	for channel, rate := range floodRates {
		all.Go(func() { spill(flooding, client, channel, rate) })
	}
	pause(flooding, time.Second) // until every queue has its share of it
	for n := range floodCallers {
		d := newDraw(l.Seed, 3*l.Callers+n, l.Vehicles, l.Instances)
		all.Go(func() {
			for flooding.Err() == nil {
				o := order{car: healthyCar(d.rng, l.Vehicles), action: telematics.Lock}
				l.note(l.call(ctx, o, d.id(), d.rng.IntN(l.Instances), callTimeout))
			}
		})
	}
	all.Wait()
	f.To = time.Now()
	f.Limited = w.limited(ctx) - before
	return f, ctx.Err()
}

// healthyCar draws a car with a good radio that executes its commands.
func healthyCar(rng *rand.Rand, vehicles int) int {
	for {
		if car := rng.IntN(vehicles) + 1; profileOf(car).Name == "" {
			return car
		}
	}
}

// spill publishes on a channel until the context ends: answers to commands that do not exist, reports, and new sessions.
func spill(ctx context.Context, client paho.Client, channel telematics.Channel, rate int) {
	tick := time.NewTicker(floodTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		for range rate / int(time.Second/floodTick) {
			client.Publish(channel.Topic(floodUnit), 0, false, drop(channel))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// drop is one message of the flood.
func drop(channel telematics.Channel) []byte {
	now := time.Now()
	switch channel {
	case telematics.AckChannel:
		return telematics.EncodeAnswer(telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: now})
	case telematics.PresenceChannel:
		return telematics.EncodePresence(telematics.Presence{Status: telematics.Online, Session: uuid.NewString(), At: now})
	default:
		return telematics.EncodeReport(telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: float64(now.UnixMilli() % 100)}})
	}
}

// limited returns how many answers all instances have dropped because their unit sent too many.
func (w *world) limited(ctx context.Context) int {
	sum := 0
	for _, n := range w.instances {
		values, err := n.Metrics(ctx)
		if err != nil {
			w.log.Warn("metrics not read", "instance", n.Name, "err", err)
			continue
		}
		sum += int(values[`motorpool_dropped_total{kind="answer", reason="over_allowance"}`])
	}
	return sum
}
