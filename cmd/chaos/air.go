package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"

	"motorpool/cmd/chaos/audit"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// air hears every command at the MQTT broker, and speaks for whoever forges and replays some.
type air struct {
	keys     *fleetKeys
	listener paho.Client
	intruder paho.Client

	mu       sync.Mutex // guards what follows
	taken    []audit.Message
	recent   []heard        // the latest genuine ones
	ours     map[heard]int  // published by the intruder, and not heard yet
	echoes   map[heard]bool // published by the intruder, ever: its client may send them twice
	retained map[heard]bool // those that were noted
}

type heard struct{ topic, payload string }

const (
	keptMessages  = 2000
	mqttPatience  = 10 * time.Second
	reconnectTime = 300 * time.Millisecond
)

func (w *world) listen() (*air, error) {
	a := &air{keys: w.keys, ours: map[heard]int{}, echoes: map[heard]bool{}, retained: map[heard]bool{}}
	options := func(user, password string) *paho.ClientOptions {
		return paho.NewClientOptions().AddBroker(w.mosquitto.ServiceURL()).SetProtocolVersion(4).
			SetClientID("chaos-" + user).SetUsername(user).SetPassword(password).SetCleanSession(true).
			SetKeepAlive(20 * time.Second).SetMaxReconnectInterval(reconnectTime).SetConnectTimeout(2 * time.Second).
			SetWriteTimeout(time.Second).SetResumeSubs(false)
	}
	a.listener = paho.NewClient(options(devstack.WatcherUser, watcherPassword).SetOnConnectHandler(a.subscribe))
	a.intruder = paho.NewClient(options(mosquitto.ServiceUser, servicePassword))
	for _, client := range []paho.Client{a.listener, a.intruder} {
		token := client.Connect()
		if !token.WaitTimeout(mqttPatience) {
			return nil, errors.New("listen to the air: no answer from mosquitto")
		}
		if err := token.Error(); err != nil {
			return nil, fmt.Errorf("listen to the air: %w", err)
		}
	}
	return a, nil
}

func (a *air) close() error {
	a.listener.Disconnect(100)
	a.intruder.Disconnect(100)
	return nil
}

func (a *air) subscribe(client paho.Client) {
	client.Subscribe(telematics.CommandChannel.Filter(), 1, func(_ paho.Client, m paho.Message) { a.hear(m) })
}

// watchRetained subscribes again and again: only a new subscription shows what a broker retains.
func (a *air) watchRetained(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if a.listener.IsConnectionOpen() {
				a.subscribe(a.listener)
			}
		}
	}
}

func (a *air) hear(m paho.Message) {
	at := time.Now()
	unit, _, err := telematics.ParseTopic(m.Topic())
	if err != nil {
		return
	}
	claims, verdict := a.keys.verify(m.Payload())
	what := heard{m.Topic(), string(m.Payload())}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Retained() {
		if a.retained[what] {
			return
		}
		a.retained[what] = true
	}
	if a.ours[what] > 0 && !m.Retained() {
		a.ours[what]--
		return
	}
	a.taken = append(a.taken, audit.Message{
		At: at, Unit: unit, Command: claims.Command, Issued: claims.IssuedAt, Expires: claims.Expires, Signed: verdict == nil, Retained: m.Retained(),
		Key: keyOf(m.Payload()), Echoed: a.echoes[what],
	})
	if verdict == nil {
		a.recent = append(a.recent, what)
		if len(a.recent) > 2*keptMessages {
			a.recent = append([]heard(nil), a.recent[keptMessages:]...)
		}
	}
}

// intrude publishes what the service did not.
func (a *air) intrude(topic string, payload []byte) error {
	what := heard{topic, string(payload)}
	a.mu.Lock()
	a.ours[what]++
	a.echoes[what] = true
	a.mu.Unlock()
	token := a.intruder.Publish(topic, 1, false, payload)
	if !token.WaitTimeout(time.Second) || token.Error() != nil {
		return errors.Join(errors.New("mosquitto does not take it"), token.Error())
	}
	return nil
}

// pick returns a message of the past.
func (a *air) pick(rng *rand.Rand) (heard, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.recent) == 0 {
		return heard{}, false
	}
	// One in two is of the last moments, and may still be at work in its car.
	n := len(a.recent)
	if rng.IntN(2) == 0 {
		n = min(n, 30)
	}
	return a.recent[len(a.recent)-1-rng.IntN(n)], true
}

const intrusionGap = 50 * time.Millisecond

// replay publishes genuine commands once more, to their own cars and to others. Both must know better.
func (w *world) replay(ctx context.Context, f fault) error {
	return w.intrude(ctx, f, func(rng *rand.Rand, car int) (string, []byte, error) {
		old, ok := w.air.pick(rng)
		if !ok {
			return "", nil, nil
		}
		if rng.IntN(5) == 0 {
			old.topic = telematics.CommandChannel.Topic(unitOf(car))
		}
		return old.topic, []byte(old.payload), nil
	})
}

// forge publishes commands that the fleet's key did not sign; some say that it did.
func (w *world) forge(ctx context.Context, f fault) error {
	return w.intrude(ctx, f, func(rng *rand.Rand, car int) (string, []byte, error) {
		key := w.foreign
		if rng.IntN(2) == 0 {
			key.ID = w.keys.signs()
		}
		now := time.Now().Truncate(time.Second)
		payload, err := key.Sign(telematics.Claims{
			Command: uuid.New(), Unit: unitOf(car), Action: telematics.Unlock, Lane: telematics.AccessLane,
			Seq: 1 << 40, IssuedAt: now, Expires: now.Add(10 * time.Second),
		})
		return telematics.CommandChannel.Topic(unitOf(car)), payload, err
	})
}

// intrude goes round the fault's cars until it is over. What Mosquitto does not take at the moment is left out.
func (w *world) intrude(ctx context.Context, f fault, next func(*rand.Rand, int) (string, []byte, error)) error {
	rng := rand.New(rand.NewPCG(w.Seed, uint64(f.At)))
	for i, end := 0, time.Now().Add(f.For); time.Now().Before(end) && ctx.Err() == nil; i++ {
		topic, payload, err := next(rng, f.Cars[i%len(f.Cars)])
		if err != nil {
			return err
		}
		if topic != "" {
			if err := w.air.intrude(topic, payload); err != nil {
				w.log.Debug("not published", "err", err)
			}
		}
		pause(ctx, intrusionGap)
	}
	return nil
}

// messages returns what was heard of the service.
func (a *air) messages() []audit.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]audit.Message(nil), a.taken...)
}
