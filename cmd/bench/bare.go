package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// bare is the fair floor of commands: a process with the service's HTTP library and MQTT client that checks the token, signs the
// command, publishes it and waits for the answer. Nothing is written down, and nothing outlives it.
type bare struct {
	Broker   string
	Password string
	Signing  string `type:"existingfile"`
	Tokens   string `type:"existingfile"`
	Vehicles int
	Budget   time.Duration `default:"10s" help:"Of a command."`

	keys     telematics.Keyring
	verified sync.Map // tokens that were: a caller sends the same one again and again
	key      telematics.Signer
	calls    *rendezvous
	client   mqtt.Client
}

// received is in what a vehicle says before its answer.
var received = []byte(`"status":"` + string(telematics.Received) + `"`)

// answerSlack is how long an answer may take beside the budget of its command.
const answerSlack = 5 * time.Second

func (b *bare) Run(ctx context.Context) error {
	if err := b.readKeys(); err != nil {
		return err
	}
	b.calls = newRendezvous(b.Vehicles)
	b.client = mqtt.NewClient(clientOptions(b.Broker, "bench-bare", devstack.GatewayUser, b.Password))
	if err := wait(b.client.Connect()); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer b.client.Disconnect(0)
	if err := wait(b.client.Subscribe("$share/bench/"+fairRoot+"+/ack", 1, func(_ mqtt.Client, m mqtt.Message) {
		if bytes.Contains(m.Payload(), received) {
			return // and the answer follows
		}
		b.calls.meet(vehicleOf(unitIn(m.Topic(), fairRoot)), m.Payload())
	})); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	e := echo.New()
	e.POST("/api/v1/admin/vehicles/:vehicle/control/lock", b.lock)
	return serveUntil(attended(ctx), e)
}

func (b *bare) readKeys() error {
	signing, err := os.ReadFile(b.Signing)
	if err != nil {
		return err
	}
	private, err := telematics.ParseSigningKeys(signing)
	if err != nil {
		return err
	}
	b.key = private[0]
	tokens, err := os.ReadFile(b.Tokens)
	if err != nil {
		return err
	}
	b.keys, err = telematics.ParseKeyring(tokens)
	return err
}

// lock answers with a body as long as the service's.
func (b *bare) lock(c echo.Context) error {
	vehicle, err := strconv.Atoi(c.Param("vehicle"))
	if err != nil || vehicle < 1 || vehicle > b.Vehicles {
		return echo.ErrNotFound
	}
	if !b.lets(c.Request().Header.Get(echo.HeaderAuthorization)) {
		return echo.ErrUnauthorized
	}
	now := time.Now().UTC()
	command := telematics.Command{
		ID: uuid.Must(uuid.NewV7()), Vehicle: telematics.VehicleID(vehicle), Unit: unitOf(vehicle), Action: telematics.Lock,
		Lane: telematics.Lock.Lane(), Seq: now.UnixMicro(), Requested: now, Deadline: now.Add(b.Budget),
	}
	message, err := telematics.V1{}.Encode(&command, b.key)
	if err != nil {
		return err
	}
	answered := b.calls.expect(vehicle)
	token := b.client.Publish(fairRoot+string(command.Unit)+"/command", message.QoS, false, message.Payload)
	if err := token.Error(); err != nil { // it did not leave; whether it arrives is known by the answer
		return echo.NewHTTPError(http.StatusServiceUnavailable, err.Error())
	}
	select {
	case payload := <-answered:
		answer, _, err := telematics.DecodeAnswer(payload, time.Now())
		if err != nil || answer.Command != command.ID {
			return echo.NewHTTPError(http.StatusBadGateway, "another answer")
		}
		return c.JSON(http.StatusOK, bareAnswer(command, answer))
	case <-time.After(b.Budget + answerSlack):
		return echo.NewHTTPError(http.StatusGatewayTimeout, "no answer")
	}
}

func (b *bare) lets(header string) bool {
	token := strings.TrimPrefix(header, "Bearer ")
	if expires, ok := b.verified.Load(token); ok {
		return time.Now().Before(expires.(time.Time))
	}
	for _, key := range b.keys {
		parsed, err := jwt.Parse([]byte(token), jwt.WithKey(jwa.EdDSA(), key), jwt.WithIssuer(tokenIssuer), jwt.WithAudience(tokenIssuer))
		if expires, ok := parsedExpiry(parsed, err); ok {
			b.verified.Store(token, expires)
			return true
		}
	}
	return false
}

func parsedExpiry(token jwt.Token, err error) (time.Time, bool) {
	if err != nil {
		return time.Time{}, false
	}
	return token.Expiration()
}

// bareAnswer has the fields of the service's.
func bareAnswer(c telematics.Command, a telematics.Answer) map[string]any {
	return map[string]any{
		"success": true, "message": fmt.Sprintf("Vehicle %d was locked.", c.Vehicle), "request_id": c.ID, "timestamp": a.At,
		"data": map[string]any{
			"id": c.ID, "vehicle_id": c.Vehicle, "action": c.Action, "parameters": nil, "state": a.State, "outcome": "executed",
			"requested_by": "bench", "requested_at": c.Requested, "sent_at": c.Requested, "received_at": nil, "completed_at": a.At,
			"deadline": c.Deadline, "attempts": 1, "latency_ms": a.At.Sub(c.Requested).Milliseconds(), "late": false,
			"reason": nil, "detail": nil, "reported": map[string]any{"telemetry": map[string]any{"is_locked": true}},
		},
	}
}

// serveUntil serves on a free port, which it prints, until the context ends.
func serveUntil(ctx context.Context, handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Println(listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
