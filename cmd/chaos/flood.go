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
	"motorpool/cmd/internal/world"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// The unit that floods has a separate vehicle, which gets no commands.
const (
	floodUnit   = telematics.Unit("flood")
	floodLength = 8 * time.Second
	floodTick   = 10 * time.Millisecond
	// floodCallers send orders during the flood: few enough for a machine that the flood keeps
	// busy.
	floodCallers = 12
)

// floodRates are messages a second, limited by the machine.
var floodRates = map[v1.Channel]int{v1.AckChannel: 12_000, v1.TelemetryChannel: 3000, v1.PresenceChannel: 1000}

// flood lets one unit publish far more than it may, without other faults, and sends orders to the
// other cars.
func (r *round) flood(ctx context.Context) (audit.Flood, error) {
	if err := r.endCarFaults(ctx); err != nil {
		return audit.Flood{}, err
	}
	world.Pause(ctx, aftermath)
	client := paho.NewClient(paho.NewClientOptions().AddBroker(r.Mosquitto.UnitsURL()).SetClientID(string(floodUnit)).SetUsername(string(floodUnit)).
		SetPassword(r.UnitPassword(floodUnit)).SetCleanSession(true).SetAutoReconnect(false))
	if token := client.Connect(); !token.WaitTimeout(mqttTimeout) || token.Error() != nil {
		return audit.Flood{}, fmt.Errorf("flood: connect: %w", token.Error())
	}
	defer client.Disconnect(0)
	before := r.limited(ctx)
	flooding, stop := context.WithTimeout(ctx, floodLength)
	defer stop()
	f := audit.Flood{Interval: audit.Interval{From: time.Now()}}
	var all sync.WaitGroup
	for channel, rate := range floodRates {
		all.Go(func() { publishFlood(flooding, client, channel, rate) })
	}
	world.Pause(flooding, time.Second) // until the queues are full
	for n := range floodCallers {
		d := newDraw(r.Seed, 3*r.Callers+n, r.fleet, r.Instances)
		all.Go(func() {
			for flooding.Err() == nil {
				o := order{car: healthyCar(d.rng, r.fleet.v1), action: telematics.Lock}
				r.load.record(r.call(ctx, o, d.id(), d.rng.IntN(r.Instances), callTimeout))
			}
		})
	}
	all.Wait()
	f.To = time.Now()
	f.Limited = r.limited(ctx) - before
	return f, ctx.Err()
}

// healthyCar draws a car of protocol v1 with a good radio that executes its commands.
func healthyCar(rng *rand.Rand, vehicles int) int {
	for {
		if car := rng.IntN(vehicles) + 1; profileOf(car).Name == "" {
			return car
		}
	}
}

// publishFlood publishes on a channel until the context ends: answers to commands that do not
// exist, reports, and new sessions.
func publishFlood(ctx context.Context, client paho.Client, channel v1.Channel, rate int) {
	tick := time.NewTicker(floodTick)
	defer tick.Stop()
	for ctx.Err() == nil {
		for range rate / int(time.Second/floodTick) {
			client.Publish(channel.Topic(floodUnit), 0, false, floodMessage(channel))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// floodMessage is one message of the flood.
func floodMessage(channel v1.Channel) []byte {
	now := time.Now()
	switch channel {
	case v1.AckChannel:
		return v1.EncodeAnswer(telematics.Answer{Command: uuid.New(), State: telematics.Succeeded, At: now})
	case v1.PresenceChannel:
		return v1.EncodePresence(telematics.Presence{Status: telematics.Online, Session: uuid.NewString(), At: now})
	default:
		return v1.EncodeReport(telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: float64(now.UnixMilli() % 100)}})
	}
}

// limited returns how many answers all instances have dropped because the unit sent too many.
func (r *round) limited(ctx context.Context) int {
	sum := 0
	for _, n := range r.Running {
		values, err := n.Metrics(ctx)
		if err != nil {
			r.Log.Warn("metrics not read", "instance", n.Name, "err", err)
			continue
		}
		sum += int(values[`motorpool_dropped_total{kind="answer", reason="over_allowance"}`])
	}
	return sum
}
