package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"motorpool/telematics"
)

// TwinsConfig says where twins are kept.
type TwinsConfig struct {
	Postgres *Postgres
	Redis    *Redis
	Every    time.Duration // between two writings of what Postgres is owed, at least. Defaults to 500 ms
	Logger   *slog.Logger  // Defaults to silence
}

// Twins keeps what vehicles say of themselves: at once in Redis, where every instance
// sees it, and a moment later in Postgres, for good. Each holds a part, and what is read
// is the newest of both: the join of two snapshots has no order, so nothing can be
// overtaken, and an empty Redis only means that Postgres has the rest. It is safe for
// concurrent use.
//
//	Observe ──► Redis     by compare-and-set, section by section
//	       └──► debts ──► Postgres     joined by unit, in batches, under row locks
//
// What somebody waits for, and presence, is written to Postgres before Observe returns.
type Twins struct {
	postgres  *Postgres
	redis     *Redis
	every     time.Duration
	log       *slog.Logger
	directory *directory
	debts     *debts
	known     *lru.Cache[telematics.VehicleID, latest] // as Redis was when it was last seen; a wrong guess costs a trip
	late      *debts                                   // what Redis could not take when it came
	reading   *outage                                  // of Redis
	offering  *outage                                  // of Redis
	lost      chan struct{}                            // holds one: Redis does not have what Postgres does not have either
}

// knownVehicles is of how many vehicles the latest state is remembered.
const knownVehicles = 1 << 16

// NewTwins assembles the twins. Observe keeps nothing for good before Run.
func NewTwins(config TwinsConfig) *Twins {
	known, err := lru.New[telematics.VehicleID, latest](knownVehicles)
	if err != nil { // only for a size below 1
		panic(err)
	}
	log := cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	return &Twins{
		postgres: config.Postgres, redis: config.Redis, every: cmp.Or(config.Every, 500*time.Millisecond), log: log,
		directory: newDirectory(config.Postgres, log), debts: newDebts(), late: newDebts(), known: known,
		reading: &outage{
			begins: "the latest state of vehicles is read from postgres alone, which is a moment behind",
			ends:   "the latest state of vehicles is read from redis again", log: log,
		},
		offering: &outage{
			begins: "the latest state of vehicles cannot be written to redis",
			ends:   "the latest state of vehicles is written to redis again", log: log,
		},
		lost: make(chan struct{}, 1),
	}
}

// Observe merges what was seen of units, whatever the order of arrival [LAW-7], and returns
// what that has changed in the sight of all instances, and the units that belong to no
// vehicle. Whoever reads through this instance sees it from then on.
func (t *Twins) Observe(ctx context.Context, observations []telematics.Observation) (telematics.Seen, error) {
	var now, soon []sighting
	for _, o := range observations {
		s := newSighting(o)
		if o.Presence != nil || o.Awaited {
			now = append(now, s)
		}
		if o.Presence == nil {
			soon = append(soon, s)
		}
	}
	seen, err := t.postgres.keep(ctx, now)
	reports, heard := t.reports(ctx, soon, &seen)
	for _, s := range heard {
		if !s.Awaited {
			err = errors.Join(err, t.debts.add(s))
		}
	}
	seen.Changes = append(seen.Changes, t.offer(ctx, reports)...)
	return seen, err
}

// report is what is to be told of a vehicle, by its unit.
type report struct {
	owner
	sighting
}

// reports joins sightings by vehicle, and notes the units that have none, or another
// protocol on record. It returns the others, too: those of which it cannot be known now are
// left to be written.
func (t *Twins) reports(ctx context.Context, sightings []sighting, seen *telematics.Seen) (reports []report, heard []sighting) {
	units := make([]telematics.Unit, 0, len(sightings))
	joined := make(map[telematics.Unit]sighting, len(sightings))
	for _, s := range sightings {
		if _, ok := joined[s.Unit]; !ok {
			units, joined[s.Unit] = append(units, s.Unit), sighting{}
		}
	}
	owners := t.directory.owners(ctx, units)
	heard = sightings[:0]
	for _, s := range sightings {
		switch o, resolved := owners[s.Unit]; {
		case resolved && o.vehicle == 0:
			seen.Unknown = appendNew(seen.Unknown, s.Unit)
		case resolved && !s.Protocol.Means(o.protocol):
			seen.Foreign = appendNew(seen.Foreign, s.Unit)
		default:
			joined[s.Unit], heard = joined[s.Unit].join(s), append(heard, s)
		}
	}
	for _, unit := range units {
		if o, resolved := owners[unit]; resolved && joined[unit].Unit != "" {
			reports = append(reports, report{o, joined[unit]})
		}
	}
	return reports, heard
}

// Twin returns a vehicle with what is known of it now, or a *telematics.Error with
// VehicleNotFound.
func (t *Twins) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	owing := t.debts.now()
	held := make(chan map[telematics.VehicleID]latest, 1)
	go func() { held <- t.held(ctx, []telematics.VehicleID{id}) }()
	twin, err := t.postgres.Twin(ctx, id)
	if err != nil {
		return telematics.Twin{}, err
	}
	return join(twin, <-held, owing), nil
}

// Twins returns vehicles with what is known of them now, by descending id, which is also
// the position in the page.
func (t *Twins) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	owing := t.debts.now()
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
		twins[i] = join(twin, held, owing)
	}
	return twins, nil
}

// held returns what Redis has of vehicles; nothing while it is away, which must not delay
// a read.
func (t *Twins) held(ctx context.Context, ids []telematics.VehicleID) map[telematics.VehicleID]latest {
	if !t.reading.mayAsk() {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	held, err := t.redis.readLatest(asking, ids)
	if ctx.Err() == nil { // else the caller left, which says nothing of Redis
		t.reading.learn(err)
	}
	if err == nil {
		t.miss(ids, held)
	}
	return held
}

// miss notices that Redis has lost what it had.
func (t *Twins) miss(ids []telematics.VehicleID, held map[telematics.VehicleID]latest) {
	for _, id := range ids {
		if _, ok := held[id]; ok {
			continue
		}
		if known, ok := t.known.Peek(id); ok && len(known.tokens) > 0 {
			t.hurry()
			return
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

// join adds to what Postgres has of a vehicle what Redis has, and what this instance owed to
// Postgres. What another unit said is not of this vehicle.
func join(twin telematics.Twin, held map[telematics.VehicleID]latest, owing owing) telematics.Twin {
	if twin.Unit == "" {
		return twin
	}
	if l, ok := held[twin.ID]; ok && l.unit == twin.Unit {
		twin.Snapshot, twin.Contact = telematics.Join(twin.Snapshot, l.snapshot), twin.Contact.Heard(l.seen)
	}
	if s := owing.of(twin.Unit); s.Unit != "" {
		twin.Snapshot, twin.Contact = telematics.Join(twin.Snapshot, s.readings), twin.Contact.Heard(s.At)
	}
	return twin
}

// Behind returns of how many units Postgres does not have the latest yet.
func (t *Twins) Behind() int { return t.debts.size() }

const (
	flushBatch = 512
	// flushShare is the part of the time that writing behind may take: where Postgres is slow, or the fleet
	// is large, more reports are joined before they are written.
	flushShare = 4
)

// Run writes to Postgres what it is owed, until the context ends, and then what is left,
// for no longer than one statement may take. It tells of changes that only the record
// could see.
func (t *Twins) Run(ctx context.Context, tell func([]telematics.Change)) error {
	pause := time.NewTimer(t.every)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.postgres.config.Timeout)
			defer cancel()
			t.flush(last, tell)
			t.offerAgain(last, tell)
			if left := t.debts.size(); left > 0 {
				t.log.Warn("reports lost that postgres did not take before the end; the next ones replace them", "units", left)
			}
			return nil
		case <-pause.C:
		case <-t.lost:
		}
		began := time.Now()
		t.flush(ctx, tell)
		t.offerAgain(ctx, tell)
		pause.Reset(max(t.every, (flushShare-1)*time.Since(began)))
	}
}

// flush writes all that is owed, batch by batch. What Postgres could not take now stays owed.
func (t *Twins) flush(ctx context.Context, tell func([]telematics.Change)) {
	var left []sighting
	for batch := range slices.Chunk(t.debts.begin(), flushBatch) {
		seen, err := t.postgres.keep(ctx, batch)
		switch {
		case Away(err) || errors.Is(err, context.Canceled):
			t.log.Warn("postgres is behind with the state of vehicles", "units", t.debts.size(), "err", err)
			left = append(left, batch...)
			continue
		case err != nil:
			t.log.Error("some of the state of vehicles cannot be kept", "err", err)
		}
		if len(seen.Changes) > 0 && tell != nil {
			tell(seen.Changes)
		}
	}
	t.debts.end(left)
}

// offerAgain offers to Redis what it could not take when it came.
func (t *Twins) offerAgain(ctx context.Context, tell func([]telematics.Change)) {
	for batch := range slices.Chunk(t.late.begin(), flushBatch) {
		var seen telematics.Seen
		reports, _ := t.reports(ctx, batch, &seen)
		changes := t.offer(ctx, reports)
		if len(changes) > 0 && tell != nil {
			tell(changes)
		}
	}
	t.late.end(nil) // what failed again is owed again
}
