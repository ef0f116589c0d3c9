package request

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"motorpool/httpapi/signin"
	"motorpool/telematics"
)

// Rates are the limits of requests; zero: any number.
type Rates struct {
	Vehicle int // commands a minute to a vehicle, from all actors together
	Refresh int // queries a minute of a vehicle, by all actors together
	Admin   int // requests a minute of an administrator
	Bulk    int // vehicles a minute that an administrator names in orders to many
	Client  int // requests a minute of a client
	Card    int // cards an hour that a client tries to add, makes its default, or starts with
}

// of returns how many requests a minute an actor may make; zero: any number.
func (r Rates) of(actor telematics.Actor) int {
	if actor.Role == telematics.Client {
		return r.Client
	}
	return r.Admin
}

// Limits counts requests against limits, and refuses those over a limit. Safe for concurrent use.
// All fields except Rates and Limiter are required.
type Limits struct {
	Rates
	Limiter  Limiter // nil: no request is counted
	Vehicles Vehicles
	Keys     Keys
	Timeout  time.Duration // of a read from the store
	Now      func() time.Time

	refusals actorBound // audit log entries of refusals
	urgent   actorBound // urgent changes
	maps     actorBound // reads of the map of a fleet
	cards    actorBound // cards, while Redis is unavailable
	reads    actorBound // reads from the store before the request is counted
}

// limit is one of the limits that a request is counted against. The zero value counts nothing.
type limit struct {
	telematics.Limit
	vehicle telematics.VehicleID // that has the limit; zero: the actor's limit
	sends   bool                 // a request over it would have sent a command
	refusal string               // a format; its arguments are the rate, then words
	words   []any

	bound *actorBound // counts for the actor while Redis is unavailable; nil: nothing does
	actor telematics.Actor
}

func newLimit(rate int, per time.Duration, cost int, key, refusal string, words ...any) limit {
	return limit{
		Limit:   telematics.Limit{Key: key, Rate: telematics.Rate{Limit: rate, Per: per}, Cost: cost},
		refusal: refusal, words: words,
	}
}

// keyOf returns the key of a limit of an actor.
func keyOf(limit string, actor telematics.Actor) string {
	return fmt.Sprintf("%s:%d:%s", limit, actor.Agency, actor.Subject)
}

func (l *Limits) actorLimit(actor telematics.Actor) limit {
	return newLimit(l.of(actor), time.Minute, 1, keyOf(string(actor.Role), actor), "Your limit of %d requests a minute is used up.")
}

// cardLimit is low, to stop card testing: trying stolen cards takes many attempts. Without Redis,
// each instance counts it by itself: adding a card does not need Redis.
func (l *Limits) cardLimit(actor telematics.Actor) limit {
	one := newLimit(l.Card, time.Hour, 1, keyOf("cards", actor), "Your limit of %d cards an hour is used up.")
	one.bound, one.actor = &l.cards, actor
	return one
}

// bulkLimit counts all vehicles of a bulk together: if they exceed the limit, none is counted.
func (l *Limits) bulkLimit(actor telematics.Actor, vehicles int) limit {
	one := newLimit(l.Bulk, time.Minute, vehicles, keyOf("bulk", actor),
		"Your limit of %d vehicles a minute, in orders to many, has fewer than %d left; nothing was sent.", vehicles)
	one.sends = true
	return one
}

func (l *Limits) vehicleLimit(vehicle telematics.VehicleID) limit {
	return limitOf("vehicle", vehicle, l.Vehicle, "The limit of %d commands a minute for vehicle %d is used up; nothing was sent.")
}

// clientsLimit is half of the vehicle's limit: a client must not keep staff from stopping the
// vehicle.
func (l *Limits) clientsLimit(vehicle telematics.VehicleID) limit {
	half := l.vehicleLimit(vehicle)
	half.Key, half.Rate.Limit = "clients-of-"+half.Key, (l.Vehicle+1)/2
	return half
}

// refreshLimit is low: waking a unit again and again empties the 12 V battery of a parked car.
func (l *Limits) refreshLimit(vehicle telematics.VehicleID) limit {
	return limitOf("refresh", vehicle, l.Refresh, "The limit of %d refreshes a minute for vehicle %d is used up; nothing was sent.")
}

func limitOf(name string, vehicle telematics.VehicleID, rate int, refusal string) limit {
	one := newLimit(rate, time.Minute, 1, fmt.Sprintf("%s:%d", name, vehicle), refusal, vehicle)
	one.vehicle, one.sends = vehicle, true
	return one
}

// pass counts a request against its actor's limit, an order or a refresh also against its
// vehicle's, and a card against its client's limit of cards. The actor's comes first: an actor over
// it must not use up a vehicle's limit, nor fill the store of used signatures. useSignature comes
// second, so that a replay takes nothing from the limit of cards.
func (l *Limits) pass(c *Call, g Gate, useSignature func() error) error {
	if g.Urgent {
		return l.passUrgent(c)
	}
	first, second := l.actorLimit(c.Actor), l.second(c, g)
	first.sends = strings.HasPrefix(g.Activity, "command") || second.sends
	counted := []limit{first}
	together := l.readsFirst(c.Actor, second)
	if together && l.applies(c, second) {
		counted = append(counted, second)
	}
	quota, err := l.count(c.Ctx(), counted...)
	if err == nil {
		err = useSignature()
	}
	c.quota = quota
	if err == nil && !together && l.applies(c, second) {
		err = l.countMore(c, second)
	}
	return err
}

// second returns the limit that a request may count against after its actor's.
func (l *Limits) second(c *Call, g Gate) limit {
	vehicle := c.VehicleID()
	switch {
	case g.Card:
		return l.cardLimit(c.Actor)
	case vehicle != 0 && g.Order:
		return l.vehicleLimit(vehicle)
	case vehicle != 0 && g.Refresh && c.WantsRefresh():
		return l.refreshLimit(vehicle)
	}
	return limit{}
}

// readsFirst reports whether the reads that decide about the vehicle's limit precede the count, so
// that one round trip counts both limits. It is false for an actor that exceeds its limit: each
// request of a flood then costs one round trip to Redis, and no reads from the store.
func (l *Limits) readsFirst(actor telematics.Actor, second limit) bool {
	return second.vehicle != 0 && l.reads.take(actor, l.Now(), l.of(actor))
}

// applies reports whether a request counts against its second limit. A repetition with the same
// idempotency key does not: it wakes no vehicle and tries no card, and its caller must get the
// result of the first request. Nor does a request for a vehicle that the actor may not see: else an
// agency could use up another's limit, and learn when the vehicle is driven.
func (l *Limits) applies(c *Call, second limit) bool {
	return second.Rate.Limit != 0 && l.Limiter != nil && !l.repeats(c.Ctx(), c) &&
		(second.vehicle == 0 || l.maySee(c.Ctx(), c.Actor, second.vehicle))
}

// passUrgent counts an urgent change, which no other limit applies to. It needs no Redis.
func (l *Limits) passUrgent(c *Call) error {
	if l.urgent.take(c.Actor, l.Now(), urgentRate) {
		return nil
	}
	return c.OverLimit(urgentRate, time.Second, "Your limit of %d changes of halts a minute is used up.")
}

// PassMap counts a read of the map of a fleet, by the number of its vehicles. It needs no Redis. It
// returns a *telematics.Error over the limit.
func (l *Limits) PassMap(c *Call, vehicles int) error {
	perMinute := l.Admin
	if vehicles > vehiclesPerRequest {
		perMinute = (l.Admin*vehiclesPerRequest + vehicles - 1) / vehicles
	}
	if l.maps.take(c.Actor, l.Now(), perMinute) {
		return nil
	}
	return c.OverLimit(
		perMinute, time.Minute/time.Duration(perMinute), "Your limit of %d reads a minute of a map with %d vehicles is used up.", vehicles,
	)
}

// PassBulk counts the vehicles of an order to many. It returns a *telematics.Error over the limit.
func (l *Limits) PassBulk(c *Call, vehicles int) error {
	if l.Bulk == 0 || l.repeats(c.Ctx(), c) {
		return nil
	}
	return l.countMore(c, l.bulkLimit(c.Actor, vehicles))
}

// PassVehicle counts a command to a vehicle of an agency that the request does not name. It returns
// a *telematics.Error over the limit.
func (l *Limits) PassVehicle(c *Call, vehicle telematics.VehicleID, agency telematics.AgencyID) error {
	if l.Vehicle == 0 || l.repeats(c.Ctx(), c) || !c.Actor.Sees(agency) {
		return nil
	}
	limits := []limit{l.vehicleLimit(vehicle)}
	if c.Actor.Role == telematics.Client {
		limits = slices.Insert(limits, 0, l.clientsLimit(vehicle))
	}
	return l.countMore(c, limits...)
}

// PassStart counts the start of a rental as a card of its client: it tries the card anew, also one
// that was just declined. It returns a *telematics.Error over the limit.
func (l *Limits) PassStart(c *Call) error {
	if l.Card == 0 || l.repeats(c.Ctx(), c) {
		return nil
	}
	start := l.cardLimit(c.Actor)
	start.sends, start.refusal = true, "Your limit of %d cards and starts an hour is used up; nothing was sent."
	return l.countMore(c, start)
}

// countMore counts a request that has passed the limit of its actor against others.
func (l *Limits) countMore(c *Call, others ...limit) error {
	quota, err := l.count(c.Ctx(), others...)
	c.quota = smallerQuota(c.quota, quota)
	return err
}

// AdmitVehicle counts a command to one of the vehicles of an order to many. It returns a
// *telematics.Error over the limit.
func (l *Limits) AdmitVehicle(ctx context.Context, actor telematics.Actor, vehicle telematics.VehicleID) error {
	if l.Vehicle == 0 || !l.maySee(ctx, actor, vehicle) {
		return nil
	}
	_, err := l.count(ctx, l.vehicleLimit(vehicle))
	return err
}

// repeats reports whether a request repeats an earlier one with the same idempotency key. If that
// cannot be read, it returns false.
func (l *Limits) repeats(ctx context.Context, c *Call) bool {
	if c.Key == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	_, found, err := c.LookUpKey(ctx, l.Keys)
	return found && err == nil
}

// maySee reports whether the actor may see the vehicle. If that cannot be read, it returns false:
// the controller refuses the order anyway.
func (l *Limits) maySee(ctx context.Context, actor telematics.Actor, vehicle telematics.VehicleID) bool {
	if actor.Agency == 0 {
		return true
	}
	// Not a child of the request's context, which would keep its list of children while the
	// request waits for the vehicle.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.Timeout)
	defer cancel()
	belongs, err := l.Vehicles.Belongs(ctx, vehicle, actor.Agency)
	return err == nil && belongs
}

// count counts a request against limits, in their order and in one round trip, up to the first one
// that it exceeds. It returns the quota with the least left; the zero Quota if there is no limit,
// or Redis is unavailable: requests that need Redis fail anyway, and others continue, except over a
// limit that this instance counts by itself then.
func (l *Limits) count(ctx context.Context, limits ...limit) (telematics.Quota, error) {
	var takes []telematics.Limit
	limits = slices.DeleteFunc(limits, func(one limit) bool { return one.Rate.Limit == 0 })
	for _, one := range limits {
		takes = append(takes, one.Limit)
	}
	if l.Limiter == nil || len(takes) == 0 {
		return telematics.Quota{}, nil
	}
	// The request of a caller that disconnects is counted, too.
	quotas, err := l.Limiter.Take(context.WithoutCancel(ctx), takes...)
	if err != nil {
		return l.countHere(limits)
	}
	var least telematics.Quota
	for i, quota := range quotas {
		if quota.Over {
			refusal := overLimit(quota, limits[i].refusal, limits[i].words...)
			if limits[i].sends {
				refusal.Outcome = telematics.NotExecuted
			}
			return quota, refusal
		}
		least = smallerQuota(least, quota)
	}
	return least, nil
}

// countHere counts a request while Redis is unavailable.
func (l *Limits) countHere(limits []limit) (telematics.Quota, error) {
	for _, one := range limits {
		if one.bound != nil && !one.bound.takeWithin(one.actor, l.Now(), one.Rate.Limit, one.Rate.Per) {
			quota := telematics.Quota{Limit: one.Rate.Limit, Reset: one.Rate.Per / time.Duration(one.Rate.Limit), Over: true}
			return quota, overLimit(quota, one.refusal, one.words...)
		}
	}
	return telematics.Quota{}, nil
}

// OverLimit returns the error for a call over a limit of the rate, and sets the headers of its
// answer. The arguments of format are the rate, then words.
func (c *Call) OverLimit(rate int, reset time.Duration, format string, words ...any) *telematics.Error {
	c.quota = telematics.Quota{Limit: rate, Reset: reset, Over: true}
	return overLimit(c.quota, format, words...)
}

// overLimit returns the error for a request over a limit. The arguments of format are the limit,
// then words.
func overLimit(q telematics.Quota, format string, words ...any) *telematics.Error {
	message := fmt.Sprintf(format, append([]any{q.Limit}, words...)...)
	return &telematics.Error{Code: signin.RateLimited, Retryable: true, RetryAfter: q.Reset,
		Message: fmt.Sprintf("%s Try again in %s", message, Plural(int(wholeSeconds(q.Reset)), "second"))}
}

// smallerQuota returns the quota with fewer requests remaining; one without a limit only if both
// have none.
func smallerQuota(a, b telematics.Quota) telematics.Quota {
	if a.Limit == 0 || b.Limit > 0 && b.Remaining <= a.Remaining {
		return b
	}
	return a
}

// actorBound limits how often each actor may do something within a minute, at this instance. It
// counts in memory, so that it also works while Redis is unavailable, and without a round trip. The
// zero value is ready; it is safe for concurrent use.
type actorBound struct {
	mu   sync.Mutex
	next map[telematics.Actor]time.Time // when the actor has its whole bound again
}

// take reports whether the actor may do it once more, and counts only what it allows. Unused
// allowance accumulates, up to that of a minute. A perMinute of zero allows any number.
func (b *actorBound) take(actor telematics.Actor, now time.Time, perMinute int) bool {
	return perMinute == 0 || b.takeWithin(actor, now, perMinute, time.Minute)
}

// takeWithin is take for a rate in another time.
func (b *actorBound) takeWithin(actor telematics.Actor, now time.Time, rate int, per time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(map[telematics.Actor]time.Time)
	}
	next, counted := b.next[actor]
	if next.Before(now) {
		next = now
	}
	next = next.Add(per / time.Duration(rate))
	if next.Sub(now) > per || !counted && !b.hasRoom(now) {
		return false
	}
	b.next[actor] = next
	return true
}

// hasRoom reports whether one more actor can be counted; if necessary, it first removes actors that
// have their whole allowance again.
func (b *actorBound) hasRoom(now time.Time) bool {
	if len(b.next) < maxBoundActors {
		return true
	}
	for actor, next := range b.next {
		if !next.After(now) {
			delete(b.next, actor)
		}
	}
	return len(b.next) < maxBoundActors
}
