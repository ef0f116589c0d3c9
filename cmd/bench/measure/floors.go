package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// answerTimeout is how long a floor waits for an answer, in addition to the budget of a command.
const answerTimeout = 5 * time.Second

// EchoFloor is the floor of commands: it publishes messages to units with the service's MQTT
// client, and waits for each to come back. Its result is load.Called.
type EchoFloor struct {
	Broker   load.Broker
	Vehicles load.Vehicles
	InFlight int
	Bytes    int // of a message
	For      time.Duration
}

// Do implements load.Job.
func (f *EchoFloor) Do(ctx context.Context, _ func(string)) (any, error) {
	var calls waiters
	client, err := f.Broker.Subscribe("bench-echo", "$share/bench/"+load.FloorRoot+"+/ack", calls.receive(load.FloorRoot))
	if err != nil {
		return nil, err
	}
	defer client.Disconnect(0)
	payload := bytes.Repeat([]byte("x"), f.Bytes)
	return load.CallConcurrently(ctx, f.InFlight, f.For, func(worker int) func() error {
		next := f.Vehicles.Turns(worker, f.InFlight)
		return func() error {
			vehicle := next()
			_, err := calls.call(vehicle, answerTimeout, func() error {
				client.Publish(load.FloorRoot+string(load.UnitOf(vehicle))+"/command", 1, false, payload)
				return nil
			})
			return err
		}
	}), nil
}

// waiters wait for the answers of vehicles, one for each vehicle.
type waiters struct {
	channels sync.Map // vehicle → chan []byte
}

var errNoAnswer = errors.New("no answer")

// call publishes, and returns the vehicle's answer.
func (w *waiters) call(vehicle int, timeout time.Duration, publish func() error) ([]byte, error) {
	answer := make(chan []byte, 1)
	w.channels.Store(vehicle, answer)
	if err := publish(); err != nil {
		return nil, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case payload := <-answer:
		return payload, nil
	case <-timer.C:
		return nil, errNoAnswer
	}
}

var received = []byte(`"status":"` + string(telematics.Received) + `"`)

// receive returns a handler of answers below a root. Received is not an answer.
func (w *waiters) receive(root string) mqtt.MessageHandler {
	return func(_ mqtt.Client, m mqtt.Message) {
		if bytes.Contains(m.Payload(), received) {
			return
		}
		if answer, ok := w.channels.LoadAndDelete(load.VehicleIn(m.Topic(), root)); ok {
			answer.(chan []byte) <- m.Payload()
		}
	}
}

// FairFloor is the fair floor of commands: a handler with the service's HTTP library, MQTT client
// and codec, that checks the token, signs the command, publishes it and waits for the answer. It
// stores nothing.
type FairFloor struct {
	Broker load.Broker
	Dir    string // of the world, with its keys
	Budget time.Duration

	world    *world.World
	verified sync.Map // token → expiry
	calls    waiters
	client   mqtt.Client
}

// Do implements load.Job.
func (f *FairFloor) Do(ctx context.Context, ready func(string)) (any, error) {
	var err error
	if f.world, err = world.New(f.Dir, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	if f.client, err = f.Broker.Subscribe("bench-fair", "$share/bench/"+load.FairRoot+"+/ack", f.calls.receive(load.FairRoot)); err != nil {
		return nil, err
	}
	defer f.client.Disconnect(0)
	e := echo.New()
	e.POST(strings.Replace(load.LockPath, "%d", ":vehicle", 1), f.lock)
	return nil, load.ServeHTTP(ctx, e, ready)
}

func (f *FairFloor) lock(c echo.Context) error {
	vehicle, err := strconv.Atoi(c.Param("vehicle"))
	if err != nil {
		return echo.ErrNotFound
	}
	if !f.isAuthorized(strings.TrimPrefix(c.Request().Header.Get(echo.HeaderAuthorization), "Bearer ")) {
		return echo.ErrUnauthorized
	}
	now := time.Now().UTC()
	command := telematics.Command{
		ID: uuid.Must(uuid.NewV7()), Vehicle: telematics.VehicleID(vehicle), Unit: load.UnitOf(vehicle), Action: telematics.Lock,
		Lane: telematics.Lock.Lane(), Seq: now.UnixMicro(), Requested: now, Deadline: now.Add(f.Budget),
	}
	message, err := v1.Dialect{}.Encode(&command, f.world.Signing)
	if err != nil {
		return err
	}
	payload, err := f.calls.call(vehicle, f.Budget+answerTimeout, func() error {
		return f.client.Publish(load.FairRoot+string(command.Unit)+"/command", message.QoS, false, message.Payload).Error()
	})
	if err != nil {
		return echo.NewHTTPError(http.StatusGatewayTimeout, err.Error())
	}
	answer, _, err := v1.DecodeAnswer(payload, time.Now())
	if err != nil || answer.Command != command.ID {
		return echo.NewHTTPError(http.StatusBadGateway, "another answer")
	}
	return c.JSON(http.StatusOK, bodyOf(command, answer))
}

// isAuthorized verifies a token once.
func (f *FairFloor) isAuthorized(token string) bool {
	if expires, ok := f.verified.Load(token); ok {
		return time.Now().Before(expires.(time.Time))
	}
	for _, key := range f.world.Tokens.Keyring() {
		parsed, err := jwt.Parse([]byte(token), jwt.WithKey(jwa.EdDSA(), key), jwt.WithIssuer(world.TokenIssuer), jwt.WithAudience(world.TokenAudience))
		if err != nil {
			continue
		}
		if expires, ok := parsed.Expiration(); ok {
			f.verified.Store(token, expires)
			return true
		}
	}
	return false
}

// bodyOf is a body with the fields of the service's.
func bodyOf(c telematics.Command, a telematics.Answer) map[string]any {
	return map[string]any{
		"success": true, "message": fmt.Sprintf("Vehicle %d was locked.", c.Vehicle), "request_id": c.ID, "timestamp": a.At,
		"data": map[string]any{
			"id": c.ID, "vehicle_id": c.Vehicle, "action": c.Action, "parameters": nil, "state": a.State, "outcome": "executed",
			"requested_by": "bench", "requested_at": c.Requested, "sent_at": c.Requested, "received_at": nil, "completed_at": a.At,
			"deadline": c.Deadline, "expires_at": c.Expires(), "attempts": 1, "published_at": []time.Time{c.Requested}, "latency_ms": a.At.Sub(c.Requested).Milliseconds(), "late": false,
			"reason": nil, "detail": nil, "reported": map[string]any{"telemetry": map[string]any{"is_locked": true}},
		},
	}
}

// SubscriberFloor is the floor of ingest: a client with the service's kind of subscription that
// counts reports.
type SubscriberFloor struct{ Broker load.Broker }

// Do implements load.Job.
func (f *SubscriberFloor) Do(ctx context.Context, ready func(string)) (any, error) {
	var n, last atomic.Int64
	filter := telematics.SharedFilter("bench", v1.TelemetryChannel.Filter())
	client, err := f.Broker.Subscribe("bench-subscriber", filter, func(mqtt.Client, mqtt.Message) {
		n.Add(1)
		last.Store(time.Now().UnixMicro())
	})
	if err != nil {
		return nil, err
	}
	defer client.Disconnect(0)
	return nil, load.ServeHTTP(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		// The caller may be gone.
		_, _ = fmt.Fprintf(w, "%s %[2]d\n%[3]s %[2]d\n%[4]s %[5]d\n", load.ReportsReceived, n.Load(), load.ReportsMerged, load.LastReport, last.Load())
	}), ready)
}
