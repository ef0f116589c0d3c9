package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// TwinsConfig says where twins are kept.
type TwinsConfig struct {
	Postgres *Postgres
	Redis    *redis.DB
	Every    time.Duration // between two writings of what Postgres is owed, while something comes. Defaults to 2 s
	Logger   *slog.Logger  // Defaults to silence
}

// Twins keeps what vehicles say of themselves: at once in Redis, where every instance
// sees it, and a moment later in Postgres, for good. Each holds a part, and what is read
// is the newest of both: the join of two snapshots has no order, so nothing can be
// overtaken, and an empty Redis only means that Postgres has the rest. Either is brought what
// this instance knows of a vehicle at its own pace. It is safe for concurrent use.
//
//	Observe ──► known ──► Redis        section by section, by compare-and-set
//	                 └──► Postgres     in batches, under row locks
//
// Presence is in Postgres before Observe returns, and what somebody waits for in Redis, or, while that is away, in Postgres.
type Twins struct {
	postgres  *Postgres
	redis     *latestStates
	every     time.Duration
	log       *slog.Logger
	directory *directory
	records   *records
	debts     *debts // of units that could not be looked up
	known     *memory
	toRedis   *backlog
	toRecord  *backlog
	reading   *unavailable.Breaker // of Redis
	offering  *unavailable.Breaker // of Redis
	lost      chan struct{}        // holds one: Redis does not have what Postgres does not have either
	came      atomic.Int64         // observations, so far
	awaited   chan struct{}        // holds one: a caller waits until Redis has all buffered reports
}

// NewTwins assembles the twins. Observe keeps nothing for good before Run.
func NewTwins(config TwinsConfig) *Twins {
	log := cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	return &Twins{
		postgres: config.Postgres, redis: newLatestStates(config.Redis), every: cmp.Or(config.Every, 2*time.Second), log: log,
		directory: newDirectory(config.Postgres, log), records: newRecords(), debts: newDebts(), known: newMemory(),
		toRedis: newBacklog(inRedis), toRecord: newBacklog(inPostgres),
		reading: &unavailable.Breaker{
			Opened: "the latest state of vehicles is read from postgres alone, which is a moment behind",
			Closed: "the latest state of vehicles is read from redis again", Log: log,
		},
		offering: &unavailable.Breaker{
			Opened: "the latest state of vehicles cannot be written to redis",
			Closed: "the latest state of vehicles is written to redis again", Log: log,
		},
		lost:    make(chan struct{}, 1),
		awaited: make(chan struct{}, 1),
	}
}

// Observe merges what was seen of units, whatever the order of arrival [LAW-7], and returns
// the units that belong to no vehicle, and what that has changed of their presence. Whoever reads
// through this instance sees it from then on; Run brings it to all others, and tells what
// it has changed of their state. What somebody waits for has been brought to all others when it returns.
func (t *Twins) Observe(ctx context.Context, observations []delivery.Observation) (delivery.Seen, error) {
	t.came.Add(int64(len(observations)))
	var now, soon []sighting
	for _, o := range observations {
		if o.Presence != nil {
			now = append(now, newSighting(o))
		} else {
			o.At = pg.FromTimestamp(pg.Timestamp(o.At))
			soon = append(soon, sighting{Observation: o})
		}
	}
	seen, err := t.postgres.keep(ctx, now)
	missing, refused := t.take(ctx, soon, &seen)
	if len(missing) > 0 { // Redis is away
		rest, late := t.postgres.keep(ctx, missing)
		addSeen(&seen, rest)
		err = errors.Join(err, late)
		for _, s := range missing {
			if unavailable.Is(late) && !s.owed {
				refused = errors.Join(refused, t.debts.add(s))
			}
		}
	}
	return seen, errors.Join(err, refused)
}

// take takes in what will be written soon, and notes the units that have no vehicle, or
// another protocol on record. It returns what somebody waits for, and was not brought to Redis.
func (t *Twins) take(ctx context.Context, sightings []sighting, seen *delivery.Seen) (missing []sighting, refused error) {
	units := make([]telematics.Unit, len(sightings))
	for i, s := range sightings {
		units[i] = s.Unit
	}
	var toRedis, toRecord []*known
	var awaited []awaitedSighting
	owners := t.directory.owners(ctx, units)
	for _, s := range sightings {
		o, resolved := owners[s.Unit]
		switch {
		case !resolved && s.Awaited:
			missing = append(missing, newSighting(s.Observation))
		case !resolved:
			refused = errors.Join(refused, t.debts.add(newSighting(s.Observation)))
		case o.vehicle == 0:
			seen.Unknown = appendNew(seen.Unknown, s.Unit)
		case !s.Protocol.Means(o.protocol):
			seen.Foreign = appendNew(seen.Foreign, s.Unit)
		case s.Missed: // it was taken in before
			missing = append(missing, owedSighting(s.Observation))
		default:
			k := t.known.of(o.vehicle, s.Unit)
			var there chan bool
			if s.Awaited {
				there = make(chan bool, 1)
				awaited = append(awaited, awaitedSighting{s, there})
			}
			redis, record := k.observe(s, o, there)
			if redis {
				toRedis = append(toRedis, k)
			}
			if record {
				toRecord = append(toRecord, k)
			}
		}
	}
	t.toRedis.add(toRedis...)
	t.toRecord.add(toRecord...)
	if len(awaited) > 0 {
		t.await()
	}
	return append(missing, t.absent(ctx, awaited)...), refused
}

// ObserveAndFlush takes in a report as Observe does, and returns at once, where the unit was looked up, or its vehicle read, a moment
// ago, or answers what its vehicle was asked. The channel says whether Redis has it; nil: it is for Observe.
func (t *Twins) ObserveAndFlush(o delivery.Observation) <-chan bool {
	owner, known := t.directory.owner(o.Unit)
	if !known {
		owner, known = t.directory.askedOwner(o.Unit, o.Asked)
	}
	if !known || owner.vehicle == 0 || !o.Protocol.Means(owner.protocol) || t.offering.IsOpen() {
		return nil
	}
	t.came.Add(1)
	o.At = pg.FromTimestamp(pg.Timestamp(o.At))
	k := t.known.of(owner.vehicle, o.Unit)
	there := make(chan bool, 1)
	redis, record := k.observe(sighting{Observation: o}, owner, there)
	if redis {
		t.toRedis.add(k)
	}
	if record {
		t.toRecord.add(k)
	}
	t.await()
	return there
}

// absentAfter is how long Redis may take: whoever waits has time for Postgres then.
const absentAfter = redis.ReadTimeout / 2

// owedSighting is one that was taken in, and is to be written to Postgres all the same.
func owedSighting(o delivery.Observation) sighting {
	s := newSighting(o)
	s.owed = true
	return s
}

// awaitedSighting is what somebody waits for until Redis has it.
type awaitedSighting struct {
	sighting
	there <-chan bool
}

// absent waits until it is known of each whether Redis has it, and returns those that it does not have.
func (t *Twins) absent(ctx context.Context, awaited []awaitedSighting) (missing []sighting) {
	if len(awaited) == 0 {
		return nil
	}
	patience := absentAfter
	if t.offering.IsOpen() {
		patience = 0
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, s := range awaited {
		select {
		case there := <-s.there:
			if there {
				continue
			}
		case <-waiting.Done():
		}
		missing = append(missing, owedSighting(s.Observation))
	}
	return missing
}

// Twin returns a vehicle with what is known of it now, or a *telematics.Error with
// VehicleNotFound.
func (t *Twins) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, _, err := t.read(ctx, id)
	if err != nil {
		return telematics.Twin{}, err
	}
	t.directory.note(&twin.Vehicle)
	t.records.keep(twin)
	return *twin, nil
}

// Record returns a vehicle without its latest state, and with the signs of life that Postgres has; or a *telematics.Error with VehicleNotFound.
func (t *Twins) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, err := t.readRecord(ctx, id)
	return pg.Deref(twin), err
}

func (t *Twins) readRecord(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	twin, err := t.postgres.Record(ctx, id)
	if err == nil {
		t.directory.note(&twin.Vehicle)
		t.records.keep(twin)
	}
	return twin, err
}

// Belongs reports whether a vehicle is an agency's. It reads the record only where that was not so when it was last read here: of a vehicle that
// came to another agency it may still report the former one, until a claim has checked the record.
func (t *Twins) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	if twin, cached := t.records.find(id); cached && twin.AgencyID == agency {
		return true, nil
	}
	twin, err := t.readRecord(ctx, id)
	return err == nil && twin.AgencyID == agency, err
}

// Told is Twin for somebody who will remember it: what Postgres does not have of it yet is
// written there first, so that nobody is told less afterwards, whatever dies. Where Postgres
// does not take it in a moment, it is told all the same.
func (t *Twins) Told(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, ahead, err := t.read(ctx, id)
	switch {
	case err != nil:
		return telematics.Twin{}, err
	case len(ahead) == 0:
		return *twin, nil
	}
	writing, cancel := context.WithTimeout(ctx, redis.ReadTimeout)
	defer cancel()
	s := sighting{vehicle: id, readings: ahead}
	s.Unit, s.Protocol, s.At, s.Report = twin.Unit, twin.Protocol, twin.Contact.LastSeen, &telematics.Report{}
	if _, err := t.postgres.keep(writing, []sighting{s}); err != nil {
		t.log.Debug("told before it was written", "vehicle", id, "err", err)
	}
	return *twin, nil
}

// recorded is what Postgres has of a vehicle.
type recorded struct {
	twin telematics.Twin
	err  error
}

// read returns a vehicle, and what Postgres does not have of it. Of the two it asks at once, Postgres is asked beside:
// that takes more stack, which who asks would keep while it waits for the vehicle.
func (t *Twins) read(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, telematics.Snapshot, error) {
	found := make(chan *recorded, 1)
	go func() {
		twin, err := t.postgres.Twin(ctx, id)
		found <- &recorded{twin, err}
	}()
	held := t.held(ctx, []telematics.VehicleID{id})
	record := <-found
	if record.err != nil {
		return nil, nil, record.err
	}
	return &record.twin, t.join(&record.twin, held), nil
}

// Twins returns vehicles with what is known of them now, by descending id, which is also
// the position in the page. A connectivity that is asked for is that of the record, which may
// be a moment behind: the contact is shown as it was found.
func (t *Twins) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	now := time.Now()
	twins, err := t.postgres.Twins(ctx, q)
	if err != nil || len(twins) == 0 {
		return twins, err
	}
	ids := make([]telematics.VehicleID, len(twins))
	for i, twin := range twins {
		ids[i] = twin.ID
	}
	held := t.held(ctx, ids)
	for i, twin := range twins {
		t.join(&twins[i], held)
		if q.Connectivity != "" && twins[i].Contact.At(now) != q.Connectivity {
			twins[i].Contact = twin.Contact
		}
	}
	return twins, nil
}

// join adds to what Postgres has of a vehicle what Redis has, and what this instance knows, and
// returns what Postgres does not have. What another unit said is not of this vehicle.
func (t *Twins) join(twin *telematics.Twin, held map[telematics.VehicleID]latest) (ahead telematics.Snapshot) {
	more := []latest{held[twin.ID]}
	if k, ok := t.known.find(twin.ID); ok {
		more = append(more, k.latest())
	}
	for _, l := range more {
		if twin.Unit == "" || l.unit != twin.Unit {
			continue
		}
		twin.Contact = twin.Contact.Heard(l.seen)
		for field, reading := range l.snapshot {
			if twin.Snapshot == nil {
				twin.Snapshot = telematics.Snapshot{}
			}
			if newer, _ := twin.Snapshot.Take(field, reading); newer { // it was read for us alone
				if ahead == nil {
					ahead = telematics.Snapshot{}
				}
				ahead[field] = twin.Snapshot[field]
			}
		}
	}
	return ahead
}

// held returns what Redis has of vehicles; nothing while it is away, which must not delay
// a read.
func (t *Twins) held(ctx context.Context, ids []telematics.VehicleID) map[telematics.VehicleID]latest {
	if !t.reading.Allow() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, redis.ReadTimeout)
	defer cancel()
	held, err := t.redis.latestOf(asking, ids)
	if ctx.Err() == nil { // else the caller left, which says nothing of Redis
		t.reading.Record(err)
	}
	if err == nil {
		t.miss(ids, held)
	}
	return held
}

// miss notices that Redis has lost what it had. It is noticed once: of what is silent for long,
// Redis has nothing, however often it is read.
func (t *Twins) miss(ids []telematics.VehicleID, held map[telematics.VehicleID]latest) {
	for _, id := range ids {
		if _, ok := held[id]; ok {
			continue
		}
		if k, ok := t.known.find(id); ok && k.lost() {
			t.hurry()
		}
	}
}

// hurry lets what Postgres is owed be written at once: Redis does not have it, or not any more.
func (t *Twins) hurry() {
	select {
	case t.lost <- struct{}{}:
	default:
	}
}

// Behind returns of how many vehicles Redis or Postgres do not have the latest yet.
func (t *Twins) Behind() int { return t.toRedis.size() + t.toRecord.size() + t.debts.size() }

// Run brings to Redis and to Postgres what they are owed, until the context ends, and then
// what is left, for no longer than one statement may take. It tells what that has changed
// in the sight of all instances: of each change one instance tells, once.
func (t *Twins) Run(ctx context.Context, tell func([]telematics.Change)) error {
	var ways sync.WaitGroup
	ways.Go(func() { t.writeBehind(ctx, tell) })
	ways.Go(func() { t.offerBehind(ctx, tell) })
	ways.Go(func() { t.directory.watchMoves(ctx) })
	ways.Wait()
	if left := t.toRecord.size() + t.debts.size(); left > 0 {
		t.log.Warn("reports lost that postgres did not take before the end; the next ones replace them", "vehicles", left)
	}
	return nil
}
