package twins

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Config configures Twins.
type Config struct {
	DB       *pg.DB
	Redis    *redis.DB
	Vehicles *vehicles.Fleet
	// FlushEvery is the interval of flushes to Postgres of what Redis does not take. Defaults to
	// 2 s.
	FlushEvery time.Duration
	// StateInterval is the interval of writes of a vehicle's state to Postgres, where nothing
	// urgent is reported; Redis has the state meanwhile. Defaults to 1 min.
	StateInterval time.Duration
	Logger        *slog.Logger // Defaults to silence
	// History samples reports. Defaults to none.
	History History

	// Metrics is where the lag of Postgres is registered. Defaults to nowhere.
	Metrics prometheus.Registerer
	// Guard recovers panics of single flushes. Nil: they are only logged.
	Guard *guard.Guard
}

// History samples reports of vehicles. It does not block.
type History interface {
	// Record samples a report.
	Record(telematics.VehicleID, telematics.AgencyID, telematics.Powertrain, *telematics.Report)
	// Missed counts reports of units whose vehicles could not be looked up.
	Missed(reports int)
	// Moved counts reports that were made before the unit came to its vehicle, or the vehicle to
	// its agency.
	Moved(reports int)
}

// noHistory is for twins without a History.
type noHistory struct{}

func (noHistory) Record(telematics.VehicleID, telematics.AgencyID, telematics.Powertrain, *telematics.Report) {
}
func (noHistory) Missed(int) {}
func (noHistory) Moved(int)  {}

// Twins stores the reported state of vehicles, and caches their records. It is safe for
// concurrent use.
type Twins struct {
	vehicles      *vehicles.Fleet
	stored        stored
	redis         *states
	dues          *dues
	flushEvery    time.Duration
	stateInterval time.Duration
	history       History
	log           *slog.Logger
	guard         *guard.Guard

	owners *owners
	// The fields that orders depend on, as they were last read here.
	records *lru.Cache[telematics.VehicleID, *telematics.Twin]

	queue       *queue
	hot         *lru.Cache[telematics.VehicleID, *hotState]
	unresolved  *unresolved
	awaited     signal // a caller waits until Redis has its report
	redisFailed signal // Redis does not take a state that Postgres does not have

	reading, writing *unavailable.Breaker // of Redis
	unstored         guard.Outage         // what Redis does not take, Postgres does not, either

	lookups *groupcommit.Batcher[delivery.Observation, lookedUp] // of awaited reports
	// Observations that Redis did not take.
	fallbacks *groupcommit.Batcher[delivery.Observation, fallback]
}

// New assembles the twins. It does no I/O; Run writes what Observe merges.
func New(config Config) *Twins {
	log, interval := cmp.Or(config.Logger, slog.New(slog.DiscardHandler)), cmp.Or(config.StateInterval, time.Minute)
	t := &Twins{
		vehicles: config.Vehicles, stored: stored{config.DB}, redis: newStates(config.Redis, config.Guard),
		dues:          newDues(config.Redis, interval),
		flushEvery:    cmp.Or(config.FlushEvery, defaultFlushEvery),
		stateInterval: interval, history: config.History, log: log, guard: config.Guard,
		owners: newOwners(config.DB, log), records: newLRU[telematics.VehicleID, *telematics.Twin](cachedRecords),
		queue: newQueue(), hot: newLRU[telematics.VehicleID, *hotState](hotStates),
		unresolved: &unresolved{queued: map[telematics.Unit]observation{}}, awaited: newSignal(), redisFailed: newSignal(),
		reading: &unavailable.Breaker{
			Opened: "reported state is read from postgres alone, which is a moment behind",
			Closed: "reported state is read from redis again", Log: log,
		},
		writing: &unavailable.Breaker{
			Opened: "reported state cannot be written to redis",
			Closed: "reported state is written to redis again", Log: log,
		},
	}
	if t.history == nil {
		t.history = noHistory{}
	}
	registerLag(config.Metrics, t.lag)
	t.lookups = pg.NewBatcher(config.DB, t.lookUpAndShare)
	t.fallbacks = pg.NewBatcher(config.DB, t.storeAwaited)
	return t
}

// Observe merges observations, whatever the order of arrival [LAW-7], and returns the units that
// no vehicle has, and the changes of presence, with alarms. Presence is committed to Postgres
// when it returns. Reports are in this instance's queue, and its reads see them; Run writes them
// to Redis, where all instances see them, and publishes the changes of the state.
func (t *Twins) Observe(ctx context.Context, observations []delivery.Observation) (delivery.Seen, error) {
	var presence []observation
	reports := make([]delivery.Observation, 0, len(observations))
	for _, o := range observations {
		if o.Presence != nil {
			presence = append(presence, newObservation(o))
		} else {
			reports = append(reports, o)
		}
	}
	seen, _, err := t.stored.observe(ctx, presence)
	if locked := t.stored.lockedError(ctx, seen); isHeld(locked) {
		t.log.Warn("presence not written to postgres, to be observed again", "units", len(seen.Locked), "err", locked)
	}
	t.noteOffline(ctx, seen.Changes)
	for i, found := range t.resolve(ctx, reports) {
		o := reports[i]
		switch {
		case !found.resolved:
			err = errors.Join(err, t.postpone(o))
		case found.belongs():
			t.merge(o, found.owner, nil)
			if alarms := alarmsOf(found.owner.of(o)); alarms != nil {
				seen.Changes = append(
					seen.Changes,
					telematics.Change{Vehicle: found.owner.vehicle, Agency: found.owner.agency, LastSeen: o.At, Alarms: alarms},
				)
			}
		default:
			addSeen(&seen, *found.ignored)
		}
	}
	return seen, err
}

// isHeld reports whether a lock is more than that of another instance, which hears the same
// presence and stores it at the same moment.
func isHeld(err error) bool {
	locked, ok := errors.AsType[*pg.LockedError](err)
	return ok && locked.Holder != "" && (locked.For == 0 || locked.For >= heldLong)
}

// alarmsOf returns the alarms that a unit has raised; nil: none. They are published once, by the
// instance that receives them, and not stored.
func alarmsOf(o delivery.Observation) []telematics.Alarm {
	if o.Report == nil {
		return nil
	}
	return o.Report.Alarms
}

// lookedUp is the owner of a unit that was observed.
type lookedUp struct {
	owner    owner
	resolved bool
	ignored  *delivery.Seen // the unit, where it has no vehicle, or another protocol is stored
	shared   chan bool      // of an awaited report: receives whether Redis has it
}

func (l lookedUp) belongs() bool { return l.resolved && l.ignored == nil }

func newLookedUp(o delivery.Observation, owner owner) lookedUp {
	found := lookedUp{owner: owner, resolved: true}
	switch {
	case owner.vehicle == 0:
		found.ignored = &delivery.Seen{Unknown: []telematics.Unit{o.Unit}}
	case !o.Protocol.Means(owner.protocol):
		found.ignored = &delivery.Seen{Foreign: []telematics.Unit{o.Unit}}
	}
	return found
}

// resolve returns the owner of the unit of each observation.
func (t *Twins) resolve(ctx context.Context, observations []delivery.Observation) []lookedUp {
	found := make([]lookedUp, len(observations))
	var missing []telematics.Unit
	for i, o := range observations {
		if owner, ok := t.owners.find(o.Unit); ok {
			found[i] = newLookedUp(o, owner)
		} else {
			missing = append(missing, o.Unit)
		}
	}
	owners := t.owners.resolve(ctx, missing)
	for i, o := range observations {
		if owner, ok := owners[o.Unit]; ok && !found[i].resolved {
			found[i] = newLookedUp(o, owner)
		}
	}
	return found
}

// merge queues an observation to be flushed. waiter, which is nil or has a buffer of one, receives
// whether Redis has it.
func (t *Twins) merge(o delivery.Observation, owner owner, waiter chan<- bool) {
	o.At = pg.FromTimestamp(pg.Timestamp(o.At))
	t.record(o.Report, owner)
	t.queue.add(owner.of(o), owner, waiter)
}

// record adds a report to the history of its vehicle and agency. A report from before the unit or
// the vehicle was moved, which the unit has sent late, belongs to neither, and is only counted.
func (t *Twins) record(r *telematics.Report, owner owner) {
	switch {
	case r == nil:
	case r.At.Before(owner.movedAt):
		t.history.Moved(1)
	default:
		t.history.Record(owner.vehicle, owner.agency, owner.powertrain, r)
	}
}

// Report begins to merge a report, as Observe does, for a caller that waits until every instance
// sees it. It does not block. The function that it returns blocks until the report is in Redis,
// or else in Postgres, or the context ends. Call that function once; it returns what Observe
// returns.
func (t *Twins) Report(o delivery.Observation) (wait func(context.Context) (delivery.Seen, error)) {
	until := time.Now().Add(sharedWithin)
	if owner, cached := t.owners.findAnswering(o.Unit, o.Asked); cached {
		found := t.share(o, newLookedUp(o, owner))
		return func(ctx context.Context) (delivery.Seen, error) { return t.awaitReport(ctx, o, found, until) }
	}
	call := t.lookups.Begin(o)
	return func(ctx context.Context) (delivery.Seen, error) {
		found, err := t.lookups.Wait(ctx, call)
		if err != nil { // the caller has left
			return delivery.Seen{}, errors.Join(err, t.postpone(o))
		}
		return t.awaitReport(ctx, o, found, until)
	}
}

// lookUpAndShare resolves the units of awaited reports, in one round trip, and merges the
// reports.
func (t *Twins) lookUpAndShare(ctx context.Context, reports []delivery.Observation) ([]lookedUp, error) {
	found := t.resolve(ctx, reports)
	for i, o := range reports {
		found[i] = t.share(o, found[i])
	}
	return found, nil
}

// share queues an awaited report, and has it flushed soon.
func (t *Twins) share(o delivery.Observation, found lookedUp) lookedUp {
	if found.belongs() {
		found.shared = make(chan bool, 1)
		t.merge(o, found.owner, found.shared)
		t.awaited.set()
	}
	return found
}

func (t *Twins) awaitReport(ctx context.Context, o delivery.Observation, found lookedUp, until time.Time) (delivery.Seen, error) {
	o = found.owner.of(o)
	switch {
	case found.ignored != nil:
		return *found.ignored, nil
	case found.resolved && t.isShared(ctx, found.shared, until):
		return delivery.Seen{}, nil
	}
	result, err := t.storeOrRetry(ctx, o)
	if err != nil && !found.resolved && (unavailable.Is(err) || ctx.Err() != nil) {
		err = errors.Join(err, t.postpone(o))
	}
	return result.seen, err
}

// storeOrRetry stores an awaited report in Postgres. Where another transaction has locked its unit,
// as the next flush of an instance does for a moment, it tries again for as long as a statement
// may wait for a lock.
func (t *Twins) storeOrRetry(ctx context.Context, o delivery.Observation) (fallback, error) {
	result, err := t.fallbacks.Do(ctx, o)
	if err != nil || !slices.Contains(result.seen.Locked, o.Unit) {
		return result, cmp.Or(err, result.err)
	}
	for retries := t.stored.NewRetries(); retries.Next(ctx); {
		result, err = t.fallbacks.Do(ctx, o)
		if err != nil || !slices.Contains(result.seen.Locked, o.Unit) {
			return result, cmp.Or(err, result.err)
		}
	}
	return result, cmp.Or(result.err, t.stored.lockedError(ctx, delivery.Seen{Locked: []telematics.Unit{o.Unit}}))
}

// postpone queues an observation of a unit that could not be looked up.
func (t *Twins) postpone(o delivery.Observation) error {
	t.history.Missed(1)
	return t.unresolved.add(newObservation(o))
}

func (t *Twins) isShared(ctx context.Context, shared <-chan bool, until time.Time) bool {
	timeout := time.Until(until)
	if t.writing.IsOpen() {
		timeout = 0
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case isShared := <-shared:
		return isShared
	case <-late.C:
	case <-ctx.Done():
	}
	select { // the caller may have come later than the reply of Redis
	case isShared := <-shared:
		return isShared
	default:
		return false
	}
}

// fallback is the result of storing an awaited report in Postgres.
type fallback struct {
	seen delivery.Seen
	err  error
}

// storeAwaited writes reports to Postgres, but those whose units are locked. Each caller gets the
// result of the whole batch.
func (t *Twins) storeAwaited(ctx context.Context, reports []delivery.Observation) ([]fallback, error) {
	seen, _, err := t.stored.observe(ctx, pg.Map(reports, newObservation))
	return slices.Repeat([]fallback{{seen, err}}, len(reports)), nil
}
