package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
)

// order is a request for a command, and how its caller behaves.
type order struct {
	car      int
	more     []int // further cars of an order to many, which has no parameters
	action   telematics.Action
	key      string        // Idempotency-Key; empty: none
	prefer   string        // Prefer; empty: none
	hangUp   time.Duration // after which the caller hangs up; zero: it waits
	instance int           // that gets the first attempt
	// The caller repeats what was refused because a server was unavailable, if it has a key.
	insists bool
	repeats bool // the caller sends it once more after success, if it has a key
}

// patience returns for how long the caller of an attempt waits, at most the given time.
func (o order) patience(timeout time.Duration) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimPrefix(o.prefer, "wait=")); err == nil {
		return min(timeout, time.Duration(seconds)*time.Second)
	}
	return timeout
}

// draw draws orders: the same ones for the same source.
type draw struct {
	rng       *rand.Rand
	ids       *rand.ChaCha8
	fleet     makeup
	instances int
}

func newDraw(seed uint64, caller int, fleet makeup, instances int) *draw {
	var key [32]byte
	for i := range 8 {
		key[i], key[8+i] = byte(seed>>(8*i)), byte(caller>>(8*i))
	}
	return &draw{rng: rand.New(rand.NewPCG(seed, uint64(caller))), ids: rand.NewChaCha8(key), fleet: fleet, instances: instances}
}

var accessActions = []telematics.Action{
	telematics.Lock, telematics.Unlock, telematics.EnableDriving, telematics.DisableDriving,
	telematics.UnlockAndEnableDriving, telematics.LockAndDisableDriving,
}

func (d *draw) order() order {
	o := order{car: d.rng.IntN(d.fleet.cars()) + 1, instance: d.rng.IntN(d.instances)}
	switch n := d.rng.IntN(100); {
	case n < 12:
		o.action = telematics.AttentionSignal
	case n < 20:
		o.action = telematics.OpenTopCase
	default:
		o.action = accessActions[d.rng.IntN(len(accessActions))]
	}
	// A module has no other commands; some are ordered in spite of that.
	if d.fleet.protocol(o.car) == ovms.Protocol && d.chance(90) {
		o.action = accessActions[d.rng.IntN(2)]
	}
	if d.chance(85) {
		o.key = d.id()
	}
	switch {
	case d.chance(60):
		// Mostly short, to check that early results stay the same.
		o.prefer = fmt.Sprintf("wait=%d", 1+min(d.rng.IntN(9), d.rng.IntN(9)))
	case d.chance(8):
		o.prefer = "respond-async"
	}
	if d.chance(4) {
		o.hangUp = time.Duration(20+d.rng.IntN(1500)) * time.Millisecond
	}
	o.insists, o.repeats = d.chance(30), d.chance(6)
	if d.chance(1) && o.action != telematics.AttentionSignal {
		for range 2 + d.rng.IntN(10) {
			if car := d.rng.IntN(d.fleet.cars()) + 1; car != o.car && !slices.Contains(o.more, car) {
				o.more = append(o.more, car)
			}
		}
	}
	return o
}

// plain draws an order that every car executes, unless it is in use.
func (d *draw) plain() order {
	return order{
		car: healthyCar(d.rng, d.fleet.v1), action: accessActions[d.rng.IntN(2)], instance: d.rng.IntN(d.instances),
	}
}

func (d *draw) chance(percent int) bool { return d.rng.IntN(100) < percent }

// id makes a UUID.
func (d *draw) id() string {
	id, err := uuid.NewRandomFromReader(d.ids)
	if err != nil {
		panic(err) // the source never fails
	}
	return id.String()
}

// callTimeout is longer than every budget.
const callTimeout = 25 * time.Second

// answer is an answer of the API, about one vehicle or many.
type answer struct {
	Data struct {
		commandData
		Items []struct {
			Vehicle telematics.VehicleID `json:"vehicle_id"`
			Command *commandData         `json:"command"`
			Error   *errorData           `json:"error"`
		} `json:"items"`
	} `json:"data"`
	Error errorData `json:"error"`

	status   int
	replayed bool
}

type commandData struct {
	ID      telematics.CommandID `json:"id"`
	Outcome telematics.Outcome   `json:"outcome"`
}

type errorData struct {
	Code    telematics.Code      `json:"code"`
	Outcome telematics.Outcome   `json:"outcome"`
	Command telematics.CommandID `json:"command_id"`
}

// call makes one HTTP call, and returns a record of it in every case. An order to many vehicles is
// a call for each of them, all with one request id.
func (r *round) call(ctx context.Context, o order, requestID string, instance int, timeout time.Duration) []audit.Call {
	c := audit.Call{
		RequestID: requestID, Key: o.key, Instance: instance, Vehicle: telematics.VehicleID(o.car), Action: o.action, Start: time.Now(),
		Patience: o.patience(timeout),
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := r.post(ctx, o, requestID, instance)
	c.End = time.Now()
	if err == nil { // else the status stays zero: no answer
		c.Status, c.Replayed = a.status, a.replayed
		c.Code, c.Outcome, c.Command = a.Error.Code, a.Error.Outcome, a.Error.Command
	}
	if len(o.more) > 0 {
		return callsToMany(c, o, a)
	}
	if a.Data.ID != telematics.NoCommand {
		c.Outcome, c.Command = a.Data.Outcome, a.Data.ID
	}
	return []audit.Call{c}
}

func callsToMany(c audit.Call, o order, a answer) []audit.Call {
	var calls []audit.Call
	for _, car := range append([]int{o.car}, o.more...) {
		c.Vehicle = telematics.VehicleID(car)
		calls = append(calls, c)
	}
	for _, item := range a.Data.Items {
		i := slices.IndexFunc(calls, func(c audit.Call) bool { return c.Vehicle == item.Vehicle })
		if i < 0 {
			continue
		}
		if item.Error != nil {
			calls[i].Code, calls[i].Outcome, calls[i].Command = item.Error.Code, item.Error.Outcome, item.Error.Command
		}
		if item.Command != nil {
			calls[i].Outcome, calls[i].Command = item.Command.Outcome, item.Command.ID
		}
	}
	return calls
}

// post returns an error if no complete answer came.
func (r *round) post(ctx context.Context, o order, requestID string, instance int) (a answer, err error) {
	path, body := fmt.Sprintf("vehicles/%d/control/%s", o.car, o.action), []byte(nil)
	switch {
	case len(o.more) > 0:
		path = "commands"
		// Plain values cannot fail to encode.
		body, _ = json.Marshal(map[string]any{"action": o.action, "vehicle_ids": append([]int{o.car}, o.more...)})
	case o.action == telematics.AttentionSignal:
		body, _ = json.Marshal(map[string]any{"signal": audit.Signal.Signal, "duration_ms": audit.Signal.Duration.Milliseconds()})
	}
	status, header, err := world.Request{
		URL: r.public[instance] + "/api/v1/admin/" + path, Token: r.admin, Body: body,
		Header: map[string]string{"X-Request-ID": requestID, "Idempotency-Key": o.key, "Prefer": o.prefer},
	}.Do(ctx, cmp.Or(r.clients[o.car%2], world.Callers), &a)
	if err != nil {
		return answer{}, err
	}
	a.status, a.replayed = status, header.Get("Idempotency-Replayed") == "true"
	return a, nil
}
