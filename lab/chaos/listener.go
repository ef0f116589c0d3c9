package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
	v1 "motorpool/telematics/v1"
)

// listener receives every command at the MQTT broker. Its intruder publishes forged and replayed
// ones.
type listener struct {
	keys     *fleetKeys
	watcher  paho.Client
	intruder paho.Client

	received   runner.Log[audit.Message]   // that the service published
	intrusions runner.Log[audit.Intrusion] // into units of protocols other than v1

	mu       sync.Mutex         // guards what follows
	recent   []published        // the latest messages that the service published
	pending  map[published]int  // published by the intruder, and not received yet
	intruded map[published]bool // published by the intruder; its client may send them twice
	retained map[published]bool // those that were recorded
}

type published struct{ topic, payload string }

const (
	keptMessages  = 2000
	mqttTimeout   = 10 * time.Second
	reconnectTime = 300 * time.Millisecond
)

func (r *round) listen() (*listener, error) {
	l := &listener{keys: r.keys, pending: map[published]int{}, intruded: map[published]bool{}, retained: map[published]bool{}}
	options := func(user, password string) *paho.ClientOptions {
		return paho.NewClientOptions().AddBroker(r.Mosquitto.ServiceURL()).SetProtocolVersion(4).
			SetClientID("chaos-" + user).SetUsername(user).SetPassword(password).SetCleanSession(true).
			SetKeepAlive(20 * time.Second).SetMaxReconnectInterval(reconnectTime).SetConnectTimeout(2 * time.Second).
			SetWriteTimeout(time.Second).SetResumeSubs(false)
	}
	l.watcher = paho.NewClient(options(devstack.GatewayUser, r.ServicePassword).SetOnConnectHandler(l.subscribe))
	l.intruder = paho.NewClient(options(mosquitto.ServiceUser, r.ServicePassword))
	for _, client := range []paho.Client{l.watcher, l.intruder} {
		token := client.Connect()
		if !token.WaitTimeout(mqttTimeout) {
			return nil, errors.New("listen to commands: no answer from mosquitto")
		}
		if err := token.Error(); err != nil {
			return nil, fmt.Errorf("listen to commands: %w", err)
		}
	}
	return l, nil
}

func (l *listener) close() error {
	l.watcher.Disconnect(100)
	l.intruder.Disconnect(100)
	return nil
}

func (l *listener) subscribe(client paho.Client) {
	filters := map[string]byte{v1.CommandChannel.Filter(): 1, ovmsCommands: 0, teltonika.CommandTopic("+"): 0}
	client.SubscribeMultiple(filters, func(_ paho.Client, m paho.Message) { l.receive(m) })
}

// watchRetained subscribes repeatedly: only a new subscription receives retained messages.
func (l *listener) watchRetained(ctx context.Context) {
	for ; ctx.Err() == nil; world.Pause(ctx, time.Second) {
		if l.watcher.IsConnectionOpen() {
			l.subscribe(l.watcher)
		}
	}
}

func (l *listener) receive(m paho.Message) {
	at := time.Now()
	received, ok := l.read(m)
	if !ok {
		return
	}
	received.At = at
	what := published{m.Topic(), string(m.Payload())}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Retained() {
		if l.retained[what] {
			return
		}
		l.retained[what] = true
	}
	if l.pending[what] > 0 && !m.Retained() {
		l.pending[what]--
		if received.Payload != "" {
			l.intrusions.Add(audit.Intrusion{Unit: received.Unit, At: at})
		}
		return
	}
	received.Echoed = l.intruded[what]
	l.received.Add(received)
	if received.Signed || received.Payload != "" {
		l.recent = append(l.recent, what)
		if len(l.recent) > 2*keptMessages {
			l.recent = append([]published(nil), l.recent[keptMessages:]...)
		}
	}
}

// ovmsCommands are the command topics of all modules.
const ovmsCommands = "ovms/+/+/client/" + ovms.Client + "/command/+"

// ovmsCommand is the topic of one command.
func ovmsCommand(u telematics.Unit, c telematics.CommandID) string {
	return fmt.Sprintf("ovms/%s/%s/client/%s/command/%s", u, u, ovms.Client, c)
}

// read decodes a message of any protocol.
func (l *listener) read(m paho.Message) (audit.Message, bool) {
	levels := strings.Split(m.Topic(), "/")
	switch {
	case levels[0] == string(ovms.Protocol) && len(levels) == 7:
		id, err := uuid.Parse(levels[6])
		return audit.Message{
			Unit: telematics.Unit(levels[1]), Command: id, Retained: m.Retained(), Payload: string(m.Payload()),
		}, err == nil
	case levels[0] == string(teltonika.Protocol) && len(levels) == 3:
		return audit.Message{Unit: telematics.Unit(levels[1]), Retained: m.Retained(), Payload: string(m.Payload())}, true
	}
	unit, _, err := v1.ParseTopic(m.Topic())
	claims, failure := l.keys.verify(m.Payload())
	return audit.Message{
		Unit: unit, Command: claims.Command, Issued: claims.IssuedAt, Expires: claims.Expires, Signed: failure == nil,
		Retained: m.Retained(), Key: keyOf(m.Payload()),
	}, err == nil
}

// intrude publishes a message to a unit as an intruder.
func (l *listener) intrude(unit telematics.Unit, topic string, payload []byte) error {
	what := published{topic, string(payload)}
	l.mu.Lock()
	l.pending[what]++
	l.intruded[what] = true
	qos := byte(1)
	if !strings.HasPrefix(topic, "motorpool/") {
		l.intrusions.Add(audit.Intrusion{Unit: unit, At: time.Now()})
		qos = 0 // else its client may send it much later
	}
	l.mu.Unlock()
	token := l.intruder.Publish(topic, qos, false, payload)
	if !token.WaitTimeout(time.Second) || token.Error() != nil {
		return errors.Join(errors.New("mosquitto does not accept it"), token.Error())
	}
	return nil
}

// pick returns an earlier message.
func (l *listener) pick(rng *rand.Rand) (published, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.recent) == 0 {
		return published{}, false
	}
	// Every second one is recent, and its command may still be in progress in the car.
	n := len(l.recent)
	if rng.IntN(2) == 0 {
		n = min(n, 30)
	}
	return l.recent[len(l.recent)-1-rng.IntN(n)], true
}

const intrusionGap = 50 * time.Millisecond

// replay publishes commands of the service once more, to their cars and to others.
func (r *round) replay(ctx context.Context, f Fault) error {
	return r.intrude(ctx, f, func(rng *rand.Rand, car int) (string, []byte, error) {
		old, ok := r.listener.pick(rng)
		if !ok {
			return "", nil, nil
		}
		isV1 := strings.HasPrefix(old.topic, "motorpool/")
		if isV1 && rng.IntN(5) == 0 {
			old.topic = v1.CommandChannel.Topic(unitOf(car))
		}
		return old.topic, []byte(old.payload), nil
	})
}

// forge publishes commands that are not signed with the fleet's key; some name its id. Units of
// other protocols execute them.
func (r *round) forge(ctx context.Context, f Fault) error {
	return r.intrude(ctx, f, func(rng *rand.Rand, car int) (string, []byte, error) {
		switch r.fleet.protocol(car) {
		case ovms.Protocol:
			return ovmsCommand(unitOf(car), uuid.New()), []byte("unlock " + modulePIN), nil
		case teltonika.Protocol:
			return teltonika.CommandTopic(unitOf(car)), []byte(`{"CMD":"setdigout ?1 ? 1"}`), nil
		}
		key := r.forger
		if rng.IntN(2) == 0 {
			key.ID = r.keys.signing()
		}
		now := time.Now().Truncate(time.Second)
		payload, err := key.Sign(telematics.Claims{
			Command: uuid.New(), Unit: unitOf(car), Action: telematics.Unlock, Lane: telematics.AccessLane,
			Seq: 1 << 40, IssuedAt: now, Expires: now.Add(10 * time.Second),
		})
		return v1.CommandChannel.Topic(unitOf(car)), payload, err
	})
}

// intrude publishes messages for the fault's cars until it is over. It skips those that Mosquitto
// does not accept.
func (r *round) intrude(ctx context.Context, f Fault, next func(*rand.Rand, int) (string, []byte, error)) error {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(f.At)))
	for i, end := 0, time.Now().Add(f.For); time.Now().Before(end) && ctx.Err() == nil; i++ {
		topic, payload, err := next(rng, f.Cars[i%len(f.Cars)])
		if err != nil {
			return err
		}
		if topic != "" {
			if err := r.listener.intrude(unitIn(topic), topic, payload); err != nil {
				r.Log.Debug("intruder did not publish", "err", err)
			}
		}
		world.Pause(ctx, intrusionGap)
	}
	return nil
}

// unitIn returns the unit that a command topic names, in any protocol.
func unitIn(topic string) telematics.Unit {
	levels := strings.Split(topic, "/")
	if levels[0] == "motorpool" {
		return telematics.Unit(levels[2])
	}
	return telematics.Unit(levels[1])
}
