package main

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/rental"
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
	r.endFaults(ctx)
	world.Pause(ctx, aftermath)
	client, err := r.floodClient()
	if err != nil {
		return audit.Flood{}, err
	}
	defer client.Disconnect(0)
	before, err := r.limited(ctx)
	if err != nil {
		return audit.Flood{}, err
	}
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
				r.load.calls.Add(r.call(ctx, o, d.id(), d.rng.IntN(r.Instances), callTimeout)...)
			}
		})
	}
	all.Wait()
	f.To = time.Now()
	after, err := r.limited(ctx)
	f.Limited = after - before
	return f, cmp.Or(err, ctx.Err())
}

// floodClient connects with the login of the unit that floods.
func (r *round) floodClient() (paho.Client, error) {
	client := paho.NewClient(
		paho.NewClientOptions().AddBroker(r.Mosquitto.UnitsURL()).SetClientID(string(floodUnit)).SetUsername(string(floodUnit)).
			SetPassword(r.UnitPassword(floodUnit)).SetCleanSession(true).SetAutoReconnect(false),
	)
	if token := client.Connect(); !token.WaitTimeout(mqttTimeout) || token.Error() != nil {
		return nil, fmt.Errorf("flood: connect: %w", token.Error())
	}
	return client, nil
}

// inventEvery is between two invented answers: within the allowance of a unit.
const inventEvery = 500 * time.Millisecond

// inventAnswers lets one unit answer commands that do not exist.
func (r *round) inventAnswers(ctx context.Context, f Fault) error {
	client, err := r.floodClient()
	if err != nil {
		return err
	}
	defer client.Disconnect(0)
	for end := time.Now().Add(f.For); time.Now().Before(end) && ctx.Err() == nil; world.Pause(ctx, inventEvery) {
		client.Publish(v1.AckChannel.Topic(floodUnit), 1, false, floodMessage(v1.AckChannel))
	}
	return nil
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
		return v1.EncodeReport(
			telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: float64(now.UnixMilli() % 100)}},
		)
	}
}

// limited returns how many answers all instances have dropped because the unit sent too many. An
// instance that is still busy with the flood may answer late.
func (r *round) limited(ctx context.Context) (sum int, err error) {
	for _, n := range r.Running {
		read := func(ctx context.Context) bool {
			values, err := n.Metrics(ctx)
			sum += int(values[`motorpool_dropped_total{kind="answer", reason="over_allowance"}`])
			return retryLater(ctx, err == nil)
		}
		if err := world.Eventually(ctx, operatorTimeout, "metrics of "+n.Name, read); err != nil {
			return 0, err
		}
	}
	return sum, nil
}

const (
	clientFloodRequests = 5000
	clientFloodWithin   = 10 * time.Second
	clientFloodCallers  = 24
	// Requests that open the connections, whose buffers take memory in Redis.
	clientFloodWarmUp = 300
	// Bytes: buffers of connections and events vary by some megabytes.
	clientFloodRoom   = 16 << 20
	clientFloodOrders = 100 * time.Millisecond // between two commands of others
	// clientFloodPath is a change without effect: no client has such a card.
	clientFloodPath = "/api/v1/client/payment-methods/4711/default"
)

// clientApp is the app of an agency, and clients who use it.
type clientApp struct {
	key              rental.AgencyKey
	flooder, another string // tokens
}

const flooder = "flooder"

// createApp creates a key for an agency's app, and tokens of clients.
func (r *round) createApp(ctx context.Context) (err error) {
	if r.app.key, err = r.AddAgencyKey(ctx, 1); err != nil {
		return err
	}
	for subject, token := range map[string]*string{flooder: &r.app.flooder, "another": &r.app.another} {
		if *token, err = r.Token(telematics.Actor{Subject: subject, Role: telematics.Client, Agency: 1}); err != nil {
			return err
		}
	}
	return nil
}

// clientFlood lets one client send far more signed changes than its limit allows, while Redis has
// little free memory and others order commands. There is no other fault, so that the flood is the
// reason of every refusal.
func (r *round) clientFlood(ctx context.Context) (f audit.ClientFlood, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clientFloodCallers}
	defer transport.CloseIdleConnections()
	callers := &http.Client{Transport: transport, Timeout: callTimeout}

	once := r.signChange(r.app.another)
	if _, err := r.answered(ctx, callers, once, 0); err != nil {
		return f, err
	}
	r.sendFlood(ctx, callers, clientFloodWarmUp)
	used, err := r.redisNumber(ctx, "memory", "used_memory")
	if err != nil {
		return f, err
	}
	if err := r.redis.ConfigResetStat(ctx).Err(); err != nil {
		return f, err
	}
	if err := r.redis.ConfigSet(ctx, "maxmemory", strconv.Itoa(used+clientFloodRoom)).Err(); err != nil {
		return f, err
	}
	f.From = time.Now()
	stop := r.orderConcurrently(ctx)
	f.Requests, f.Limited = r.sendFlood(ctx, callers, clientFloodRequests)
	stop()
	f.To = time.Now()
	if f.Full, err = r.fullErrors(ctx); err != nil {
		return f, err
	}
	if err := r.redis.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		return f, err
	}
	if f.Kept, err = r.keptSignatures(ctx); err != nil {
		return f, err
	}
	if err := r.redis.FlushAll(ctx).Err(); err != nil {
		return f, err
	}
	f.Replayed, err = r.answered(ctx, callers, once, 1)
	return f, err
}

// answered sends a change of another client until an instance answers it.
func (r *round) answered(ctx context.Context, callers *http.Client, signature string, instance int) (code telematics.Code, err error) {
	err = world.Eventually(ctx, settleWithin, Instance(instance)+" answers a client", func(ctx context.Context) bool {
		var failure error
		code, failure = r.change(ctx, callers, r.app.another, signature, instance)
		return retryLater(ctx, failure == nil)
	})
	return code, err
}

// sendFlood sends requests from many concurrent callers, to every instance, and returns how many
// were answered, and how many refused because of the client's rate.
func (r *round) sendFlood(ctx context.Context, callers *http.Client, requests int) (answered, limited int) {
	var next, got, refused atomic.Int64
	end := time.Now().Add(clientFloodWithin)
	var all sync.WaitGroup
	for range clientFloodCallers {
		all.Go(func() {
			for n := next.Add(1); n <= int64(requests) && time.Now().Before(end) && ctx.Err() == nil; n = next.Add(1) {
				code, err := r.change(ctx, callers, r.app.flooder, r.signChange(r.app.flooder), int(n)%len(r.Running))
				if err != nil {
					continue
				}
				got.Add(1)
				if code == "rate_limited" {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(got.Load()), int(refused.Load())
}

// orderConcurrently sends orders of other callers until stop is called, which waits for their
// answers.
func (r *round) orderConcurrently(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d := newDraw(r.Seed, 3*r.Callers, r.fleet, r.Instances)
	var orders sync.WaitGroup
	orders.Go(func() {
		for ; ctx.Err() == nil; world.Pause(ctx, clientFloodOrders) {
			o, id := order{car: d.rng.IntN(r.Vehicles) + 1, action: telematics.Lock, instance: d.rng.IntN(r.Instances)}, d.id()
			orders.Go(func() { r.load.calls.Add(r.call(context.WithoutCancel(ctx), o, id, o.instance, callTimeout)...) })
		}
	})
	return func() { cancel(); orders.Wait() }
}

func (r *round) signChange(token string) string {
	signed := rental.SignedRequest{Method: http.MethodPost, Path: clientFloodPath, Token: token}
	return signed.Sign(r.app.key.ID, r.app.key.Secret, time.Now(), crand.Text()).String()
}

// change sends a signed request directly to an instance, without the network's faults, and returns
// the error code of the answer; empty: it was accepted.
func (r *round) change(ctx context.Context, callers *http.Client, token, signature string, instance int) (telematics.Code, error) {
	var body answer
	_, _, err := world.Request{
		URL: r.Running[instance].Public + clientFloodPath, Token: token, Header: map[string]string{rental.SignatureHeader: signature},
	}.Do(ctx, callers, &body)
	return body.Error.Code, err
}

// keptSignatures counts the flooder's signatures that are stored in Redis and Postgres.
func (r *round) keptSignatures(ctx context.Context) (int, error) {
	kept := 0
	keys := r.redis.Scan(ctx, 0, "*nonce*", 1000).Iterator()
	for keys.Next(ctx) {
		kept++
	}
	if err := keys.Err(); err != nil {
		return 0, err
	}
	var rows int
	err := r.watcher.db.GetContext(ctx, &rows, `select count(*) from used_signatures where subject = $1`, flooder)
	return kept + rows, err
}

// redisNumber is a number that Redis says in a section of its information, which has a title there.
func (r *round) redisNumber(ctx context.Context, section, field string) (int, error) {
	info := r.redis.InfoMap(ctx, section)
	if info.Err() != nil {
		return 0, info.Err()
	}
	return strconv.Atoi(info.Item(strings.ToUpper(section[:1])+section[1:], field))
}

// fullErrors is how many writes Redis has refused because it is full, since its statistics were
// reset.
func (r *round) fullErrors(ctx context.Context) (int, error) {
	info := r.redis.InfoMap(ctx, "errorstats")
	if count, ok := strings.CutPrefix(info.Item("Errorstats", "errorstat_OOM"), "count="); ok {
		return strconv.Atoi(count)
	}
	return 0, info.Err() // none
}
