package load

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

// Units are the units of vehicles. With a keyring each verifies its commands, executes each once,
// and answers with what changed; without one it returns each message, as the floor needs it. The
// job is ready when all units are subscribed, and runs until Finish. Its result is Heard.
type Units struct {
	Broker      Broker
	Root        string // of the topics
	Vehicles    Vehicles
	Connections int    // over which the units are spread
	Keyring     string // file of the public keys
	Network     Network
	Hold        time.Duration // between received and the answer, if there is a network

	keys  signing.Keyring
	units []unit // by index of the vehicle
}

// Heard is what all units received.
type Heard struct {
	Executed int64 `json:"executed"`
	Repeated int64 `json:"repeated"` // commands received again, and not executed again
	Refused  int64 `json:"refused"`
	// When the last command was first answered, by index of the vehicle; microseconds since the
	// epoch.
	Answered []int64 `json:"answered"`
}

// Network is the median of a mobile network's latency, which is log-normal between two fifths and
// twice the median; zero: none. A median of 5 s means 2 to 10 s, for which the service is made.
type Network time.Duration

const networkSigma = 0.5

// Least is the shortest latency.
func (n Network) Least() time.Duration { return time.Duration(n) * 2 / 5 }

// Most is the longest latency.
func (n Network) Most() time.Duration { return time.Duration(n) * 2 }

func (n Network) draw() time.Duration {
	for {
		d := time.Duration(float64(n) * math.Exp(networkSigma*rand.NormFloat64()))
		if n.Least() <= d && d <= n.Most() {
			return d
		}
	}
}

type unit struct {
	mu       sync.Mutex
	last     telematics.CommandID
	message  []byte // the last command, as received
	answer   []byte
	pending  bool // the answer is not published yet
	executed int64
	repeated int64
	refused  int64
	answered int64
}

// subscriptionsPerPacket bounds the size of a SUBSCRIBE packet.
const subscriptionsPerPacket = 500

// Do implements Job.
func (u *Units) Do(ctx context.Context, ready func(string)) (any, error) {
	u.units = make([]unit, u.Vehicles.Count)
	if u.Keyring != "" {
		text, err := os.ReadFile(u.Keyring)
		if err != nil {
			return nil, err
		}
		if u.keys, err = signing.ParseKeyring(text); err != nil {
			return nil, err
		}
	}
	for n := range u.Connections {
		client, err := u.connect(n)
		if err != nil {
			return nil, err
		}
		defer client.Disconnect(0)
	}
	ready("")
	<-ctx.Done()
	return u.sum(), nil
}

func (u *Units) connect(n int) (mqtt.Client, error) {
	name := fmt.Sprintf("bench-units-%s%d", strings.ReplaceAll(u.Root, "/", "-"), n)
	client, err := u.Broker.Connect(name, u.receive)
	if err != nil {
		return nil, err
	}
	filters := map[string]byte{}
	for v := n; v < u.Vehicles.Count; v += u.Connections {
		filters[u.Root+string(UnitOf(u.Vehicles.ID(v)))+"/command"] = 1
		if len(filters) == subscriptionsPerPacket || v+u.Connections >= u.Vehicles.Count {
			if err := await(client.SubscribeMultiple(filters, nil)); err != nil {
				return nil, fmt.Errorf("subscribe %s: %w", name, err)
			}
			clear(filters)
		}
	}
	return client, nil
}

func (u *Units) sum() Heard {
	var h Heard
	for i := range u.units {
		by := &u.units[i]
		by.mu.Lock()
		h.Executed += by.executed
		h.Repeated += by.repeated
		h.Refused += by.refused
		h.Answered = append(h.Answered, by.answered)
		by.mu.Unlock()
	}
	return h
}

func (u *Units) receive(client mqtt.Client, m mqtt.Message) {
	vehicle := VehicleIn(m.Topic(), u.Root)
	index, ok := u.Vehicles.Index(vehicle)
	if !ok {
		return
	}
	by, topic := &u.units[index], u.Root+string(UnitOf(vehicle))+"/ack"
	if u.keys == nil {
		u.publish(client, topic, m.Payload())
		return
	}
	command, answer, repeated := by.execute(u.keys, UnitOf(vehicle), m.Payload())
	switch {
	case answer == nil: // refused
	case u.Network == 0:
		u.publish(client, topic, answer)
	default:
		time.AfterFunc(u.Network.draw(), func() {
			if !by.isPending(command) {
				u.publish(client, topic, answer)
				return
			}
			u.publish(client, topic, v1.EncodeAnswer(telematics.Answer{Command: command, State: telematics.Received, At: time.Now()}))
			if !repeated {
				time.AfterFunc(u.Hold, func() { by.answerFirst(command, func() { u.publish(client, topic, answer) }) })
			}
		})
	}
}

// execute verifies a command, executes it once, and returns the answer; nil: the command is
// refused.
func (by *unit) execute(keys signing.Keyring, is telematics.Unit, message []byte) (command telematics.CommandID, answer []byte, repeated bool) {
	by.mu.Lock()
	defer by.mu.Unlock()
	if bytes.Equal(message, by.message) { // verified before
		by.repeated++
		return by.last, by.answer, true
	}
	claims, err := keys.Verify(message)
	now := time.Now()
	if err != nil || claims.Unit != is || !now.Before(claims.Expires) || claims.Command == by.last {
		by.refused++
		return telematics.NoCommand, nil, false
	}
	by.last, by.message, by.pending = claims.Command, message, true
	by.executed++
	by.answer = v1.EncodeAnswer(telematics.Answer{
		Command: claims.Command, State: telematics.Succeeded, At: now,
		Report: &telematics.Report{At: now, Values: map[telematics.Field]any{telematics.IsLocked: true}},
	})
	return by.last, by.answer, false
}

func (by *unit) isPending(command telematics.CommandID) bool {
	by.mu.Lock()
	defer by.mu.Unlock()
	return by.pending && by.last == command
}

func (by *unit) answerFirst(command telematics.CommandID, publish func()) {
	by.mu.Lock()
	if by.last == command {
		by.pending, by.answered = false, time.Now().UnixMicro()
	}
	by.mu.Unlock()
	publish()
}

// publish retries while a busy connection does not take the message, if there is a network: then
// many units share a connection.
func (u *Units) publish(client mqtt.Client, topic string, message []byte) {
	for {
		// The caller reports a missing answer.
		err := client.Publish(topic, 1, false, message).Error()
		if err == nil || u.Network == 0 || !client.IsConnected() {
			return
		}
	}
}
