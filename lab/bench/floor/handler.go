package floor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/cmd/dev/folder"
	"motorpool/lab/bench/load"
	"motorpool/lab/world"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Handler is the fair floor of commands: with the service's HTTP library, MQTT client and codec it
// checks the token, signs the command, publishes it and waits for the answer. It stores nothing.
//
// With servers to store commands in it is the durable floor, what a good engineer writes in a day:
// each command is registered in Redis, so that a vehicle executes one at a time, and Postgres has
// it before it is published, and then its answer. It audits, retransmits and recovers nothing.
type Handler struct {
	Broker          load.Broker
	Root            string // of the topics
	Dir             string // of the world, with its keys
	Budget          time.Duration
	Postgres, Redis string // URLs

	world    *world.World
	verified sync.Map // token → expiry
	calls    waiters
	client   mqtt.Client
	store    *store // none: of the fair floor
}

// Do implements load.Job.
func (f *Handler) Do(ctx context.Context, ready func(string)) (_ any, err error) {
	if f.world, err = world.New(f.Dir, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	if f.Postgres != "" {
		if f.store, err = openStore(ctx, f.Postgres, f.Redis); err != nil {
			return nil, err
		}
	}
	if f.client, err = subscribe(f.Broker, f.Root+"+/ack", f.calls.receive(f.Root)); err != nil {
		return nil, err
	}
	defer f.client.Disconnect(0)
	e := echo.New()
	e.POST(strings.Replace(load.LockPath, "%d", ":vehicle", 1), f.lock)
	load.ServeHTTP(ctx, e, ready)
	return nil, nil
}

func (f *Handler) lock(c echo.Context) error {
	vehicle, err := strconv.Atoi(c.Param("vehicle"))
	if err != nil {
		return echo.ErrNotFound
	}
	if !f.isAuthorized(strings.TrimPrefix(c.Request().Header.Get(echo.HeaderAuthorization), "Bearer ")) {
		return echo.ErrUnauthorized
	}
	now, ctx := time.Now().UTC(), c.Request().Context()
	command := telematics.Command{
		ID: uuid.Must(uuid.NewV7()), Vehicle: telematics.VehicleID(vehicle), Unit: load.UnitOf(vehicle), Action: telematics.Lock,
		Lane: telematics.Lock.Lane(), Seq: now.UnixMicro(), Requested: now, Deadline: now.Add(f.Budget),
	}
	if err := f.store.begin(ctx, command); err != nil {
		return err
	}
	message, err := v1.Dialect{}.Encode(&command, f.world.Signing)
	if err != nil {
		return err
	}
	payload, err := f.calls.call(vehicle, f.Budget+answerTimeout, func() error {
		return f.client.Publish(f.Root+string(command.Unit)+"/command", message.QoS, false, message.Payload).Error()
	})
	if err != nil {
		return echo.NewHTTPError(http.StatusGatewayTimeout, err.Error())
	}
	answer, _, err := v1.DecodeAnswer(payload, time.Now())
	if err != nil || answer.Command != command.ID {
		return echo.NewHTTPError(http.StatusBadGateway, "another answer")
	}
	if err := f.store.end(ctx, command, answer); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, bodyOf(command, answer))
}

// isAuthorized verifies a token once.
func (f *Handler) isAuthorized(token string) bool {
	if expires, ok := f.verified.Load(token); ok {
		return time.Now().Before(expires.(time.Time))
	}
	for _, key := range f.world.Tokens.Keyring() {
		parsed, err := jwt.Parse([]byte(token), jwt.WithKey(jwa.EdDSA(), key),
			jwt.WithIssuer(folder.TokenIssuer), jwt.WithAudience(folder.TokenAudience))
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
			"deadline": c.Deadline, "expires_at": c.Expires(), "attempts": 1, "published_at": []time.Time{c.Requested},
			"latency_ms": a.At.Sub(c.Requested).Milliseconds(), "late": false,
			"reason": nil, "detail": nil, "reported": map[string]any{"telemetry": map[string]any{"is_locked": true}},
		},
	}
}
