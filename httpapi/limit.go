package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// Headers that say what is left of a limit.
const (
	headerLimit     = "RateLimit-Limit"
	headerRemaining = "RateLimit-Remaining"
	headerReset     = "RateLimit-Reset"
)

func perMinute(n int) telematics.Rate { return telematics.Rate{Limit: n, Per: time.Minute} }
func perHour(n int) telematics.Rate   { return telematics.Rate{Limit: n, Per: time.Hour} }

// limit is one of the limits that a request is counted against.
type limit struct {
	telematics.Limit
	vehicle telematics.VehicleID // whose limit it is; zero: the actor's
	refusal string               // what a caller over the limit reads: a format of the limit and then of words
	words   []any
	outcome telematics.Outcome // likewise
}

// limit counts a request against its actor's limit, an order or a refresh also against its vehicle's, and a card against its
// client's limit of cards. The actor's comes first: an actor over it must not use up a vehicle that others need, nor fill the
// memory of used signatures. That comes second: a replay takes nothing from the limit of cards.
func (s *server) limit(c echo.Context, g gate) error {
	if g.urgent {
		return s.limitUrgent(c)
	}
	call, ctx := callOf(c), c.Request().Context()
	limits, second := []limit{s.actorLimit(call.actor)}, s.secondLimit(c, g)
	together := s.readsFirst(call.actor, second)
	if together && s.applies(ctx, call, second) {
		limits = append(limits, second)
	}
	quota, refusal := s.count(ctx, limits...)
	if g.client && refusal == nil {
		if err := s.useSignature(c.Request(), call); err != nil {
			showQuota(c.Response().Header(), quota)
			return err
		}
	}
	if refusal == nil && !together && s.applies(ctx, call, second) {
		var left telematics.Quota
		left, refusal = s.count(ctx, second)
		quota = tighter(quota, left)
	}
	call.quota = quota
	showQuota(c.Response().Header(), quota)
	if refusal == nil {
		return nil
	}
	if g.commands() || g.refresh && refreshes(c.Request()) {
		refusal.Outcome = telematics.NotExecuted
	}
	return refusal
}

// secondLimit returns what a request may be counted against after its actor's limit. The zero limit counts nothing.
func (s *server) secondLimit(c echo.Context, g gate) limit {
	if g.card {
		return s.cardLimit(callOf(c).actor)
	}
	vehicle, err := vehicleParam(c)
	switch {
	case err == nil && g.order:
		return s.vehicleLimit(vehicle)
	case err == nil && g.refresh && refreshes(c.Request()):
		return s.refreshLimit(vehicle)
	}
	return limit{}
}

// readsFirst reports whether the service reads whether a vehicle's limit applies before it counts the request against its actor's
// limit, so that one trip counts both. An actor who makes more requests than the actor's limit lets through is counted first: a
// flood costs one trip to Redis for each request, and no reads of the record.
func (s *server) readsFirst(actor telematics.Actor, second limit) bool {
	return second.vehicle != 0 && s.reading.take(actor, s.Now(), s.actorRate(actor))
}

// applies reports whether a request counts against its second limit. A repetition under its idempotency key wakes no vehicle and tries
// no card, and its caller must learn what became of the first request. A vehicle that the actor may not see has no limit: else an
// agency could use up another's, and learn when it is driven.
func (s *server) applies(ctx context.Context, call *call, l limit) bool {
	return l.Rate.Limit != 0 && s.Limiter != nil && !s.repeats(ctx, call) && (l.vehicle == 0 || s.mayOrder(ctx, call.actor, l.vehicle))
}

// limitUrgent bounds what no other limit holds up. It counts in memory, so it needs no Redis, and other requests of the actor do not count.
func (s *server) limitUrgent(c echo.Context) error {
	if s.urgent.take(callOf(c).actor, s.Now(), urgentRate) {
		return nil
	}
	usedUp := telematics.Quota{Limit: urgentRate, Reset: time.Second, Over: true}
	showQuota(c.Response().Header(), usedUp)
	return overLimit(usedUp, "Your limit of %d changes of halts a minute is used up.")
}

// commands reports whether commands are given, which are then not executed.
func (g gate) commands() bool { return strings.HasPrefix(g.activity, "command") }

// repeats reports whether a request repeats an earlier one under its idempotency key. Where that cannot be read, it counts as the first.
func (s *server) repeats(ctx context.Context, call *call) bool {
	if call.key == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.ReadBudget)
	defer cancel()
	_, found, err := s.made(ctx, call)
	return found && err == nil
}

// mayOrder reports whether the actor may see the vehicle. Where that cannot be read, the controller refuses the order anyway.
func (s *server) mayOrder(ctx context.Context, actor telematics.Actor, vehicle telematics.VehicleID) bool {
	if actor.Agency == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, s.ReadBudget)
	defer cancel()
	belongs, err := s.Fleet.Belongs(ctx, vehicle, actor.Agency)
	return err == nil && belongs
}

// actorRate is how many requests a minute an actor may make; zero: any number.
func (s *server) actorRate(actor telematics.Actor) int {
	if actor.Role == telematics.Client {
		return s.ClientRate
	}
	return s.AdminRate
}

func (s *server) actorLimit(actor telematics.Actor) limit {
	return limit{
		Limit:   telematics.Limit{Key: actorKey(string(actor.Role), actor), Rate: perMinute(s.actorRate(actor)), Cost: 1},
		refusal: "Your limit of %d requests a minute is used up.",
	}
}

// cardLimit is low: a person who tries stolen cards needs many, most of which are declined.
func (s *server) cardLimit(actor telematics.Actor) limit {
	return limit{
		Limit:   telematics.Limit{Key: actorKey("cards", actor), Rate: perHour(s.CardRate), Cost: 1},
		refusal: "Your limit of %d cards an hour is used up.",
	}
}

// bulkLimit is that of the vehicles in an administrator's orders to many, which counts all of an order, or none.
func (s *server) bulkLimit(actor telematics.Actor, vehicles int) limit {
	return limit{
		Limit:   telematics.Limit{Key: actorKey("bulk", actor), Rate: perMinute(s.BulkRate), Cost: vehicles},
		refusal: "Your limit of %d vehicles a minute, in orders to many, has fewer than %d left; nothing was sent.", words: []any{vehicles},
		outcome: telematics.NotExecuted,
	}
}

func (s *server) vehicleLimit(vehicle telematics.VehicleID) limit {
	return limit{
		Limit:   telematics.Limit{Key: vehicleKey("vehicle", vehicle), Rate: perMinute(s.VehicleRate), Cost: 1},
		refusal: "The limit of %d commands a minute for vehicle %d is used up; nothing was sent.", words: []any{vehicle},
		vehicle: vehicle, outcome: telematics.NotExecuted,
	}
}

// refreshLimit is low: a unit that is woken again and again empties the 12 V battery of a parked car.
func (s *server) refreshLimit(vehicle telematics.VehicleID) limit {
	return limit{
		Limit:   telematics.Limit{Key: vehicleKey("refresh", vehicle), Rate: perMinute(s.RefreshRate), Cost: 1},
		refusal: "The limit of %d refreshes a minute for vehicle %d is used up; nothing was sent.", words: []any{vehicle},
		vehicle: vehicle, outcome: telematics.NotExecuted,
	}
}

// count counts a request against limits, in their order and in one trip, up to the first that it is over. It returns the quota with
// the least left, and no quota where there is no limit, or Redis is unavailable: what needs Redis is refused without it anyway, and everything else goes on.
func (s *server) count(ctx context.Context, limits ...limit) (telematics.Quota, *telematics.Error) {
	var takes []telematics.Limit
	limits = slices.DeleteFunc(limits, func(l limit) bool { return l.Rate.Limit == 0 })
	for _, l := range limits {
		takes = append(takes, l.Limit)
	}
	if s.Limiter == nil || len(takes) == 0 {
		return telematics.Quota{}, nil
	}
	// A caller that hangs up is counted, too.
	quotas, err := s.Limiter.Take(context.WithoutCancel(ctx), takes...)
	if err != nil {
		return telematics.Quota{}, nil
	}
	var least telematics.Quota
	for i, quota := range quotas {
		if quota.Over {
			return quota, limits[i].over(quota)
		}
		least = tighter(least, quota)
	}
	return least, nil
}

func (l limit) over(q telematics.Quota) *telematics.Error {
	refusal := overLimit(q, l.refusal, l.words...)
	refusal.Outcome = l.outcome
	return refusal
}

// overLimit returns the refusal of a request over a limit. The format is of the limit and then of words.
func overLimit(q telematics.Quota, format string, words ...any) *telematics.Error {
	message := fmt.Sprintf(format, append([]any{q.Limit}, words...)...)
	return &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: q.Reset,
		Message: fmt.Sprintf("%s Try again in %s", message, counted(int(wholeSeconds(q.Reset)), "second"))}
}

// vehicleKey names one of the limits of a vehicle.
func vehicleKey(limit string, vehicle telematics.VehicleID) string {
	return limit + ":" + strconv.FormatInt(int64(vehicle), 10)
}

// actorKey names one of the limits of an actor.
func actorKey(limit string, actor telematics.Actor) string {
	return limit + ":" + strconv.FormatInt(int64(actor.Agency), 10) + ":" + actor.Subject
}

// tighter returns the quota that ends sooner.
func tighter(actor, vehicle telematics.Quota) telematics.Quota {
	if actor.Limit == 0 || vehicle.Limit > 0 && vehicle.Remaining <= actor.Remaining {
		return vehicle
	}
	return actor
}

func showQuota(h http.Header, q telematics.Quota) {
	if q.Limit == 0 {
		return
	}
	h.Set(headerLimit, strconv.Itoa(q.Limit))
	h.Set(headerRemaining, strconv.Itoa(q.Remaining))
	h.Set(headerReset, strconv.FormatInt(wholeSeconds(q.Reset), 10))
}
