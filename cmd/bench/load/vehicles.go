package load

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
)

// Roots of topics. The floors have their own, so that the service does not receive their messages.
const (
	ServiceRoot = "motorpool/v1/"
	FloorRoot   = "bench/floor/"
	FairRoot    = "bench/fair/"
)

// SerialPrefix begins the serial of each unit.
const SerialPrefix = "356938"

// UnitOf returns the unit of a vehicle, with a serial as long as a real one.
func UnitOf(vehicle int) telematics.Unit {
	return telematics.Unit(fmt.Sprintf("%s%09d", SerialPrefix, vehicle))
}

// VehicleIn returns the vehicle whose unit a topic below a root names; 0: none.
func VehicleIn(topic, root string) int {
	serial, _, _ := strings.Cut(strings.TrimPrefix(topic, root), "/")
	n, _ := strconv.Atoi(strings.TrimPrefix(serial, SerialPrefix))
	return n
}

// Vehicles are those that take part in a load: Count of them, with the ids 1, 1+Every, 1+2*Every
// and so on, so that what is read and written for them is spread over the whole fleet.
type Vehicles struct{ Count, Every int }

// Spread returns a number of vehicles, spread over a fleet.
func Spread(fleet, vehicles int) Vehicles {
	vehicles = min(vehicles, fleet)
	return Vehicles{vehicles, fleet / vehicles}
}

// ID returns the id of the nth vehicle, from 0.
func (v Vehicles) ID(n int) int { return 1 + n*v.Every }

// Index is the inverse of ID; false: the vehicle does not take part.
func (v Vehicles) Index(id int) (int, bool) {
	n := (id - 1) / v.Every
	return n, id == v.ID(n) && n >= 0 && n < v.Count
}

// Turns returns a function that returns the ids of a worker's vehicles in turn. No vehicle belongs
// to two workers.
func (v Vehicles) Turns(worker, workers int) func() int {
	next := worker
	return func() int {
		id := v.ID(next)
		if next += workers; next >= v.Count {
			next = worker
		}
		return id
	}
}

const (
	dialTimeout = 5 * time.Second
	// lostAfter is when a caller stops waiting for an answer.
	lostAfter = 15 * time.Second
)

// Broker is the MQTT broker, with an account.
type Broker struct{ URL, User, Password string }

// Connect returns a client that is connected with the service's options.
func (b Broker) Connect(id string, onMessage mqtt.MessageHandler) (mqtt.Client, error) {
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(b.URL).SetClientID(id).SetUsername(b.User).SetPassword(b.Password).
		SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(dialTimeout).
		SetWriteTimeout(400 * time.Millisecond).SetKeepAlive(time.Minute).SetDefaultPublishHandler(onMessage))
	if err := await(client.Connect()); err != nil {
		return nil, fmt.Errorf("connect %s to the MQTT broker: %w", id, err)
	}
	return client, nil
}

// Subscribe connects a client, and returns it when its subscription at QoS 1 is granted.
func (b Broker) Subscribe(id, filter string, onMessage mqtt.MessageHandler) (mqtt.Client, error) {
	client, err := b.Connect(id, onMessage)
	if err != nil {
		return nil, err
	}
	return client, await(client.Subscribe(filter, 1, nil))
}

func await(token mqtt.Token) error {
	if !token.WaitTimeout(dialTimeout) {
		return errors.New("no answer")
	}
	return token.Error()
}
