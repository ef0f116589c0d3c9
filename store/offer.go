package store

import (
	"context"
	"maps"
	"runtime/trace"
	"slices"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

const (
	offerBatch = 256
	// offerRounds bounds how often a section is offered in a row that other instances keep changing.
	// It is offered again later.
	offerRounds = 8
)

// offer offers to Redis all that it is owed, and tells what that has changed. The rule of the
// merge is applied here; Redis only compares and sets: a section that another instance has
// replaced meanwhile comes back, and is merged and offered again. It reports false where
// Redis could not be reached; then all stays owed.
func (t *Twins) offer(ctx context.Context, tell func([]telematics.Change)) bool {
	defer t.toRedis.end()
	reached := true
	for batch := range slices.Chunk(t.toRedis.begin(), offerBatch) {
		left := batch
		if reached {
			left, reached = t.offerBatch(ctx, batch, tell)
		}
		for _, k := range left {
			k.arrived(false)
		}
		t.toRedis.again(left)
	}
	return reached
}

// offerBatch returns the vehicles of which something is left to be offered.
func (t *Twins) offerBatch(ctx context.Context, batch []*known, tell func([]telematics.Change)) (left []*known, reached bool) {
	if err := t.meet(ctx, batch); err != nil {
		t.learn(ctx, err)
		return batch, false
	}
	news := make(map[*known]telematics.Snapshot, len(batch))
	left = batch
	var err error
	for round := 0; len(left) > 0 && round < offerRounds && err == nil; round++ {
		left, err = t.offerOnce(ctx, left, news)
	}
	for _, k := range batch { // before the news are told, which may take its time
		if !slices.Contains(left, k) {
			k.arrived(true)
		}
	}
	if tell != nil {
		if changes := t.changes(ctx, news); len(changes) > 0 {
			tell(changes)
		}
	}
	return left, err == nil
}

// offerOnce makes one trip, and adds to news what that has changed.
func (t *Twins) offerOnce(ctx context.Context, vehicles []*known, news map[*known]telematics.Snapshot) (left []*known, err error) {
	defer trace.StartRegion(ctx, delivery.StepMerge).End()
	proposals := make([]proposal, len(vehicles))
	offers := make([]offer, len(vehicles))
	for i, k := range vehicles {
		proposals[i] = t.propose(k)
		offers[i] = proposals[i].offer
	}
	fates, err := t.redis.offer(ctx, offers)
	t.learn(ctx, err)
	if err != nil {
		return vehicles, err
	}
	for i, p := range proposals {
		if fates[i].err != nil {
			t.log.Warn("latest state refused by redis", "vehicle", p.known.vehicle, "err", fates[i].err)
			p.arrived(false)
			continue // the next report is offered
		}
		fresh, again, emptied := p.settle(fates[i])
		if news[p.known] = telematics.Join(news[p.known], fresh); again {
			left = append(left, p.known)
		}
		if emptied {
			t.hurry()
		}
	}
	return left, nil
}

// propose offers what Redis does not have.
func (t *Twins) propose(k *known) proposal {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := proposal{known: k, offer: offer{vehicle: k.vehicle, unit: k.unit, seen: k.seen}, changes: make(map[string]int, len(k.sections))}
	for _, section := range telematics.Sections {
		state := k.sections[section]
		if state.changes == state.taken && state.token != "" || !k.has(section) {
			continue
		}
		row, err := encodeSection(section, k.snapshot)
		if err != nil { // never for the types of ParseValue
			t.log.Error("section not encoded", "vehicle", k.vehicle, "section", section, "err", err)
			continue
		}
		p.changes[section] = state.changes
		p.offer.sections = append(p.offer.sections, sectionOffer{name: section, expected: state.token, row: row})
	}
	return p
}

func (t *Twins) learn(ctx context.Context, err error) {
	if ctx.Err() == nil {
		t.offering.Record(err)
	}
}

// meet makes sure that a vehicle's first report is compared with what was known before, and
// not with nothing.
func (t *Twins) meet(ctx context.Context, vehicles []*known) error {
	var strange []*known
	var ids []telematics.VehicleID
	for _, k := range vehicles {
		if !k.hasMet() {
			strange, ids = append(strange, k), append(ids, k.vehicle)
		}
	}
	if len(strange) == 0 {
		return nil
	}
	recorded := make(chan map[telematics.VehicleID]telematics.Snapshot, 1)
	go func() {
		kept, err := t.postgres.snapshots(ctx, ids)
		if err != nil {
			t.log.Debug("what was known of vehicles is not compared with", "vehicles", len(ids), "err", err)
		}
		recorded <- kept
	}()
	held, err := t.redis.latestOf(ctx, ids)
	if err != nil { // who waits for Redis learns it, however long Postgres takes
		return err
	}
	kept := <-recorded
	for _, k := range strange {
		k.meet(held[k.vehicle], kept[k.vehicle])
	}
	return nil
}

// changes returns what there is to tell. Whose vehicle it is, is asked for now: what Redis takes
// late, because it was away, may be another agency's by then.
func (t *Twins) changes(ctx context.Context, news map[*known]telematics.Snapshot) []telematics.Change {
	maps.DeleteFunc(news, func(_ *known, fields telematics.Snapshot) bool { return len(fields) == 0 })
	units := make([]telematics.Unit, 0, len(news))
	for k := range news {
		units = append(units, k.unit)
	}
	owners := t.directory.owners(ctx, units)
	list := make([]telematics.Change, 0, len(news))
	for k, fields := range news {
		change := k.change(fields)
		if o, ok := owners[k.unit]; ok {
			if o.vehicle != k.vehicle { // the unit was built into another one since
				continue
			}
			change.Agency, change.Powertrain = o.agency, o.powertrain
		}
		list = append(list, change)
	}
	return list
}
