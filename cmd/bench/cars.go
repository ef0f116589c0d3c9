package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// cars is the process of the vehicles. Given the public keys, each verifies the command, does it once and answers with
// what it changed; without them it sends back what it is sent, as the floor has it. It says when all of them listen, and prints
// what they heard when it is told to end.
type cars struct {
	part
	Broker      string
	Password    string
	Root        string        `help:"Of the topics."`
	Connections int           `help:"Over which the vehicles are spread."`
	Keyring     string        `help:"File of the public keys; none: echo."`
	Cellular    time.Duration `help:"Median of what the network takes before a vehicle says that it received a command; 0: it answers at once."`
	Hold        time.Duration `help:"From then to the answer."`

	keys  telematics.Keyring
	heard []heardBy // by the vehicle's place
}

// heardBy is what one vehicle has heard.
type heardBy struct {
	mu       sync.Mutex // guards what follows
	last     telematics.CommandID
	message  []byte // the last command, as it came
	answer   []byte
	pending  bool // the answer is not given yet
	started  int64
	repeated int64
	refused  int64
	answered int64 // microseconds since the epoch: when the answer to the last command was first given to the connection
}

// heardByAll is what all of them have heard.
type heardByAll struct {
	Connected int     `json:"connected"` // connections that are still there
	Started   int64   `json:"started"`
	Repeated  int64   `json:"repeated"` // the same command once more, which was not done again
	Refused   int64   `json:"refused"`
	Answered  []int64 `json:"answered,omitempty"` // of slow ones, by vehicle: when the answer to the last command was first given away, microseconds since the epoch
}

func (c *cars) Run(ctx context.Context) error {
	c.heard = make([]heardBy, c.Vehicles)
	if c.Keyring != "" {
		text, err := os.ReadFile(c.Keyring)
		if err != nil {
			return err
		}
		if c.keys, err = telematics.ParseKeyring(text); err != nil {
			return err
		}
	}
	clients := make([]mqtt.Client, c.Connections)
	for n := range clients {
		client, err := c.connect(n)
		if err != nil {
			return fmt.Errorf("connection %d of the vehicles: %w", n, err)
		}
		defer client.Disconnect(0)
		clients[n] = client
	}
	fmt.Println(c.Vehicles)
	if !told(ctx) {
		return nil
	}
	all := c.sum()
	for _, client := range clients {
		if client.IsConnectionOpen() {
			all.Connected++
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// told waits for the line by which a helper is asked for its result.
func told(ctx context.Context) bool {
	line := make(chan bool, 1)
	go func() {
		var last string
		_, err := fmt.Fscanln(os.Stdin, &last)
		line <- err == nil
	}()
	select {
	case asked := <-line:
		return asked
	case <-ctx.Done():
		return false
	}
}

// subscriptionsAtOnce are in one packet.
const subscriptionsAtOnce = 500

// connect lets every so manieth vehicle listen on a connection of its own, or of a few.
func (c *cars) connect(n int) (mqtt.Client, error) {
	options := clientOptions(c.Broker, fmt.Sprintf("bench-cars-%s-%d", hyphened(c.Root), n), devstack.GatewayUser, c.Password).SetKeepAlive(time.Minute).
		SetDefaultPublishHandler(c.hear) // not by filter: the client would look through all of a connection's for each message
	client := mqtt.NewClient(options)
	if err := wait(client.Connect()); err != nil {
		return nil, err
	}
	filters := map[string]byte{}
	for v := n; v < c.Vehicles; v += c.Connections {
		filters[c.Root+string(unitOf(c.id(v)))+"/command"] = 1
		if len(filters) == subscriptionsAtOnce || v+c.Connections >= c.Vehicles {
			if err := wait(client.SubscribeMultiple(filters, nil)); err != nil {
				return nil, err
			}
			filters = map[string]byte{}
		}
	}
	return client, nil
}

// hear takes a command, or what the floor sends in its place.
func (c *cars) hear(client mqtt.Client, m mqtt.Message) {
	unit := unitIn(m.Topic(), c.Root)
	place, ok := c.place(vehicleOf(unit))
	if !ok {
		return
	}
	by := &c.heard[place]
	if c.keys == nil {
		c.give(client, unit, m.Payload())
		return
	}
	command, answer, repeated := c.obey(by, unit, m.Payload())
	switch {
	case answer == nil: // nothing to say
	case c.Cellular == 0:
		c.give(client, unit, answer)
	default:
		time.AfterFunc(cellular(c.Cellular).takes(), func() {
			if !c.acknowledge(client, by, unit, command) {
				c.give(client, unit, answer)
			} else if !repeated {
				time.AfterFunc(c.Hold, func() { c.answer(client, by, unit, command, answer) })
			}
		})
	}
}

// obey verifies a command, does it once, and returns the answer.
func (c *cars) obey(by *heardBy, unit telematics.Unit, message []byte) (command telematics.CommandID, answer []byte, repeated bool) {
	by.mu.Lock()
	defer by.mu.Unlock()
	if bytes.Equal(message, by.message) { // it was verified
		by.repeated++
		return by.last, by.answer, true
	}
	claims, err := c.keys.Verify(message)
	now := time.Now()
	if err != nil || claims.Unit != unit || !now.Before(claims.Expires) || claims.Command == by.last {
		by.refused++
		return telematics.NoCommand, nil, false
	}
	by.last, by.message, by.pending = claims.Command, message, true
	by.started++
	by.answer = telematics.EncodeAnswer(telematics.Answer{
		Command: claims.Command, State: telematics.Succeeded, At: now,
		Report: &telematics.Report{At: now, Values: map[telematics.Field]any{telematics.IsLocked: true}},
	})
	return by.last, by.answer, false
}

// acknowledge says that the vehicle works on a command, for each copy of it [ACK-1] [CMD-5], unless it has answered.
func (c *cars) acknowledge(client mqtt.Client, by *heardBy, unit telematics.Unit, command telematics.CommandID) bool {
	by.mu.Lock()
	pending := by.pending && by.last == command
	by.mu.Unlock()
	if pending {
		c.give(client, unit, telematics.EncodeAnswer(telematics.Answer{Command: command, State: telematics.Received, At: time.Now()}))
	}
	return pending
}

// answer gives an answer for the first time.
func (c *cars) answer(client mqtt.Client, by *heardBy, unit telematics.Unit, command telematics.CommandID, answer []byte) {
	by.mu.Lock()
	if by.last == command {
		by.pending = false
	}
	by.mu.Unlock()
	at := c.give(client, unit, answer)
	by.mu.Lock()
	defer by.mu.Unlock()
	if by.last == command {
		by.answered = at.UnixMicro()
	}
}

// give hands a message to the connection, and returns when it began to: what is given once more may have gone the first time.
func (c *cars) give(client mqtt.Client, unit telematics.Unit, message []byte) time.Time {
	at := time.Now()
	for {
		err := client.Publish(c.Root+string(unit)+"/ack", 1, false, message).Error() // whoever asked says so if it does not arrive
		// A crowd of vehicles on one connection may be more than it takes at once.
		if err == nil || c.Cellular == 0 || !client.IsConnected() {
			return at
		}
	}
}

func (c *cars) sum() heardByAll {
	var all heardByAll
	for i := range c.heard {
		by := &c.heard[i]
		by.mu.Lock()
		all.Started += by.started
		all.Repeated += by.repeated
		all.Refused += by.refused
		if c.Cellular > 0 {
			all.Answered = append(all.Answered, by.answered)
		}
		by.mu.Unlock()
	}
	return all
}
