package httpapi

import (
	"context"
	"fmt"
	"net/http"
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

// limit takes a request from its actor's limit, an order or a refresh from its vehicle's too, and a card
// from its client's of cards. The actor's comes first, and alone: who is over it must not use up a vehicle that others need, nor fill the
// memory of used signatures. That comes second: a replay takes nothing from a vehicle, nor from the limit of cards.
// An order that was made before, under its key, wakes no vehicle, and a card that was added tries none:
// its caller must hear what became of it.
func (s *server) limit(c echo.Context, g gate) error {
	if g.urgent {
		return s.limitUrgent(c)
	}
	call, ctx := callOf(c), c.Request().Context()
	quota, refusal := s.takeActor(ctx, call.actor)
	if g.client && refusal == nil {
		if err := s.useSignature(c.Request(), call); err != nil {
			showQuota(c.Response().Header(), quota)
			return err
		}
	}
	asks := g.refresh && refreshes(c.Request())
	if g.card && refusal == nil && !s.repeats(ctx, call, s.CardRate) {
		var left telematics.Quota
		left, refusal = s.takeCard(ctx, call.actor)
		quota = tighter(quota, left)
	}
	if vehicle, err := vehicleParam(c); err == nil && refusal == nil {
		var left telematics.Quota
		switch {
		case asks:
			left, refusal = s.takeRefresh(ctx, call.actor, vehicle)
		case g.order && !s.repeats(ctx, call, s.VehicleRate):
			left, refusal = s.takeVehicle(ctx, call.actor, vehicle)
		}
		quota = tighter(quota, left)
	}
	call.quota = quota
	showQuota(c.Response().Header(), quota)
	if refusal == nil {
		return nil
	}
	if asks || g.commands() {
		refusal.Outcome = telematics.NotExecuted
	}
	return refusal
}

// urgentRate is how many urgent changes a minute an actor may make at an instance. Nobody needs so many; but each adds an entry to the
// history, which nobody can delete from.
const urgentRate = 600

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

// repeats reports whether a request names one that was made before. Where that cannot be
// known, it counts; where there is no limit, nobody needs to know.
func (s *server) repeats(ctx context.Context, call *call, limit int) bool {
	if limit == 0 || call.key == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, s.ReadBudget)
	defer cancel()
	_, found, err := s.Bulks.Made(ctx, *call.key)
	return found && err == nil
}

// takeActor takes a request from the actor's limit.
func (s *server) takeActor(ctx context.Context, actor telematics.Actor) (telematics.Quota, *telematics.Error) {
	quota := s.take(ctx, actorKey(string(actor.Role), actor), perMinute(s.actorRate(actor)))
	return quota, overLimit(quota, "Your limit of %d requests a minute is used up.")
}

// takeCard takes a card from the client's limit, which is low: whoever tries out stolen cards needs many, and
// it is the declined ones that tell.
func (s *server) takeCard(ctx context.Context, actor telematics.Actor) (telematics.Quota, *telematics.Error) {
	quota := s.take(ctx, actorKey("cards", actor), perHour(s.CardRate))
	return quota, overLimit(quota, "Your limit of %d cards an hour is used up.")
}

// takeBulk takes the vehicles of an order to many from the administrator's limit of them: all, or none.
func (s *server) takeBulk(ctx context.Context, actor telematics.Actor, vehicles int) (telematics.Quota, *telematics.Error) {
	quota := s.takeN(ctx, actorKey("bulk", actor), perMinute(s.BulkRate), vehicles)
	refusal := overLimit(quota, "Your limit of %d vehicles a minute, in orders to many, has fewer than %d left; nothing was sent.", vehicles)
	if refusal != nil {
		refusal.Outcome = telematics.NotExecuted
	}
	return quota, refusal
}

// actorRate is how many requests a minute an actor may make; zero: any number.
func (s *server) actorRate(actor telematics.Actor) int {
	if actor.Role == telematics.Client {
		return s.ClientRate
	}
	return s.AdminRate
}

// takeVehicle takes an order from the vehicle's limit.
func (s *server) takeVehicle(ctx context.Context, actor telematics.Actor, vehicle telematics.VehicleID) (telematics.Quota, *telematics.Error) {
	return s.takeOf(ctx, actor, vehicle, "vehicle", s.VehicleRate, "commands")
}

// takeOf takes from one of the limits of a vehicle. One that is not the actor's to see has
// none: else an agency could use up another's, and learn when it is driven.
func (s *server) takeOf(ctx context.Context, actor telematics.Actor, vehicle telematics.VehicleID, limit string, rate int, of string) (telematics.Quota, *telematics.Error) {
	if rate == 0 || !s.mayOrder(ctx, actor, vehicle) {
		return telematics.Quota{}, nil
	}
	quota := s.take(ctx, fmt.Sprintf("%s:%d", limit, vehicle), perMinute(rate))
	refusal := overLimit(quota, "The limit of %d %s a minute for vehicle %d is used up; nothing was sent.", of, vehicle)
	if refusal != nil {
		refusal.Outcome = telematics.NotExecuted
	}
	return quota, refusal
}

// mayOrder reports whether the actor may see the vehicle. Where that cannot be known,
// the controller refuses the order anyway.
func (s *server) mayOrder(ctx context.Context, actor telematics.Actor, vehicle telematics.VehicleID) bool {
	if actor.Agency == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, s.ReadBudget)
	defer cancel()
	twin, err := s.Fleet.Twin(ctx, vehicle)
	return err == nil && actor.Sees(twin.AgencyID)
}

// take returns no quota where there is no limit, or nobody to count: what needs Redis is
// refused without it anyway, and everything else goes on.
func (s *server) take(ctx context.Context, key string, rate telematics.Rate) telematics.Quota {
	return s.takeN(ctx, key, rate, 1)
}

func (s *server) takeN(ctx context.Context, key string, rate telematics.Rate, n int) telematics.Quota {
	if rate.Limit == 0 || s.Limiter == nil {
		return telematics.Quota{}
	}
	// Whoever hangs up at once is counted, too.
	quota, err := s.Limiter.Take(context.WithoutCancel(ctx), key, rate, n)
	if err != nil {
		return telematics.Quota{}
	}
	return quota
}

// overLimit words what is used up, with the limit before all that else is in the words.
func overLimit(q telematics.Quota, words string, more ...any) *telematics.Error {
	if !q.Over {
		return nil
	}
	message := fmt.Sprintf(words, append([]any{q.Limit}, more...)...)
	return &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: q.Reset,
		Message: fmt.Sprintf("%s Try again in %s", message, counted(int(wholeSeconds(q.Reset)), "second"))}
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
