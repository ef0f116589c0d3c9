package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

// Units are the units of vehicles. With a keyring each verifies its commands, executes each once,
// and answers with what changed; without one it returns each message, as the floor needs it. The
// job is ready when all units are subscribed, and runs until Finish. Its result is Heard.
type Units struct {
	Broker   Broker
	Root     string // of the topics
	Vehicles Vehicles
	// Connections over which the units are spread.
	Connections int
	Presence    bool // each unit announces itself first, as real ones do

	Keyring string  // file of the public keys
	Network Latency // before a unit says received, and before it repeats an answer
	Work    Latency // then, before the answer
	Hold    time.Duration

	keys      signing.Keyring
	units     []unit // by index of the vehicle
	executed  atomic.Int64
	repeated  atomic.Int64
	listening sync.WaitGroup
}

// Heard is what all units received.
type Heard struct {
	Executed int64 `json:"executed"`
	Repeated int64 `json:"repeated"` // commands received again, and not executed again
}

// Latency is the median of a log-normal latency between two fifths and twice the median; zero:
// none. A median of 5 s means 2 to 10 s, for which the service is made.
type Latency time.Duration

// Least is the shortest latency.
func (l Latency) Least() time.Duration { return time.Duration(l) * 2 / 5 }

func (l Latency) draw() time.Duration {
	for {
		d := time.Duration(float64(l) * math.Exp(rand.NormFloat64()/2))
		if l.Least() <= d && d <= 2*time.Duration(l) {
			return d
		}
	}
}

type unit struct {
	mu      sync.Mutex
	message []byte  // the last command, as received
	answer  *answer // to it
}

type answer struct {
	command telematics.CommandID
	message []byte
	sent    atomic.Bool
}

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
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		u.listening.Wait()
	}()
	var connecting errgroup.Group
	connecting.SetLimit(32) // more may be too many for the MQTT broker
	for n := range u.Connections {
		connecting.Go(func() error { return u.connect(ctx, n) })
	}
	if err := errors.Join(connecting.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	ready("")
	<-ctx.Done()
	return Heard{u.executed.Load(), u.repeated.Load()}, nil
}

// connect connects the units of the nth connection until the context ends, and returns when they
// are subscribed.
func (u *Units) connect(ctx context.Context, n int) error {
	c, err := u.Broker.dial(ctx, fmt.Sprintf("bench-units-%s%d", strings.ReplaceAll(u.Root, "/", "-"), u.Vehicles.ID(n)))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	u.listening.Go(func() { _ = c.listen(func(p *packets.PublishPacket) { u.receive(c, p) }) })
	var filters []string
	for v := n; v < u.Vehicles.Count; v += u.Connections {
		is := UnitOf(u.Vehicles.ID(v))
		filters = append(filters, u.Root+string(is)+"/command")
		if u.Presence { // the MQTT broker has retained it when it grants the subscription
			presence := telematics.Presence{Status: telematics.Online, Session: "bench", At: time.Now()}
			message := publication(v1.PresenceChannel.Topic(is), v1.EncodePresence(presence))
			message.Retain = true
			err = errors.Join(err, c.send(message))
		}
	}
	return errors.Join(err, c.subscribe(filters))
}

// receive acknowledges and answers a command. If a write fails, the connection is lost, which
// listen notices, and the caller reports a missing answer.
func (u *Units) receive(c *conn, p *packets.PublishPacket) {
	ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
	ack.MessageID = p.MessageID
	vehicle := VehicleIn(p.TopicName, u.Root)
	index, ok := u.Vehicles.Index(vehicle)
	if !ok {
		_ = c.send(ack)
		return
	}
	by, topic := &u.units[index], u.Root+string(UnitOf(vehicle))+"/ack"
	if u.keys == nil {
		_ = c.send(ack, publication(topic, p.Payload))
		return
	}
	answer, repeated := u.execute(by, UnitOf(vehicle), p.Payload)
	switch {
	case answer == nil: // refused
		_ = c.send(ack)
	case u.Network == 0 && u.Work == 0:
		_ = c.send(ack, publication(topic, answer.message))
	default:
		_ = c.send(ack)
		time.AfterFunc(u.Network.draw(), func() {
			if answer.sent.Load() {
				_ = c.send(publication(topic, answer.message))
				return
			}
			received := telematics.Answer{Command: answer.command, State: telematics.Received, At: time.Now()}
			_ = c.send(publication(topic, v1.EncodeAnswer(received)))
			if !repeated {
				time.AfterFunc(u.Work.draw()+u.Hold, func() {
					answer.sent.Store(true)
					_ = c.send(publication(topic, answer.message))
				})
			}
		})
	}
}

// execute verifies a command, executes it once, and returns the answer; nil: the command is
// refused.
func (u *Units) execute(by *unit, is telematics.Unit, message []byte) (to *answer, repeated bool) {
	by.mu.Lock()
	defer by.mu.Unlock()
	if bytes.Equal(message, by.message) { // verified before
		u.repeated.Add(1)
		return by.answer, true
	}
	claims, err := u.keys.Verify(message)
	now := time.Now()
	if err != nil || claims.Unit != is || !now.Before(claims.Expires) || by.answer != nil && claims.Command == by.answer.command {
		return nil, false
	}
	u.executed.Add(1)
	by.message = message
	by.answer = &answer{command: claims.Command, message: v1.EncodeAnswer(telematics.Answer{
		Command: claims.Command, State: telematics.Succeeded, At: now,
		Report: &telematics.Report{At: now, Values: map[telematics.Field]any{telematics.IsLocked: true}},
	})}
	return by.answer, false
}
