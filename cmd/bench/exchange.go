package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/simulator/devstack"
)

// exchange is the floor of commands: a process with the service's MQTT client that publishes to vehicles and waits for their
// echoes, so many at a time. It prints what came of it.
type exchange struct {
	Broker   string
	Password string
	Vehicles int
	InFlight int
	Bytes    int `help:"Of a message."`
	For      time.Duration
}

// lostAfter is when an echo, or an answer, is given up.
const lostAfter = 15 * time.Second

func (x exchange) Run(ctx context.Context) error {
	calls := newRendezvous(x.Vehicles)
	client, err := x.connect(calls)
	if err != nil {
		return err
	}
	defer client.Disconnect(0)
	payload := bytes.Repeat([]byte("x"), x.Bytes)
	result := inParallel(ctx, x.InFlight, x.For, func(worker int) func() error {
		turn := newTurn(worker, x.InFlight, x.Vehicles)
		return func() error {
			vehicle := turn.next()
			echo := calls.expect(vehicle)
			client.Publish(floorRoot+string(unitOf(vehicle))+"/command", 1, false, payload)
			select {
			case <-echo:
				return nil
			case <-time.After(lostAfter):
				return errors.New("no echo")
			}
		}
	})
	return json.NewEncoder(os.Stdout).Encode(result)
}

func (x exchange) connect(calls *rendezvous) (mqtt.Client, error) {
	client := mqtt.NewClient(clientOptions(x.Broker, "bench-exchange", devstack.GatewayUser, x.Password))
	if err := wait(client.Connect()); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return client, wait(client.Subscribe("$share/bench/"+floorRoot+"+/ack", 1, func(_ mqtt.Client, m mqtt.Message) {
		calls.meet(vehicleOf(unitIn(m.Topic(), floorRoot)), m.Payload())
	}))
}

// rendezvous is where whoever has asked a vehicle meets its answer. A vehicle is asked by one at a time.
type rendezvous struct {
	mu      sync.Mutex
	waiting map[int]chan []byte // guarded by mu
}

func newRendezvous(vehicles int) *rendezvous {
	return &rendezvous{waiting: make(map[int]chan []byte, vehicles)}
}

func (r *rendezvous) expect(vehicle int) <-chan []byte {
	answer := make(chan []byte, 1)
	r.mu.Lock()
	r.waiting[vehicle] = answer
	r.mu.Unlock()
	return answer
}

func (r *rendezvous) meet(vehicle int, answer []byte) {
	r.mu.Lock()
	waiting := r.waiting[vehicle]
	delete(r.waiting, vehicle)
	r.mu.Unlock()
	if waiting != nil {
		waiting <- answer
	}
}

// turn takes the vehicles of one worker in turn, none of which is another's.
type turn struct{ at, step, vehicles int }

func newTurn(worker, workers, vehicles int) *turn { return &turn{worker, workers, vehicles} }

func (t *turn) next() int {
	vehicle := t.at + 1
	if t.at += t.step; t.at >= t.vehicles {
		t.at %= t.step
	}
	return vehicle
}
