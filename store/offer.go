package store

import (
	"context"
	"maps"
	"slices"

	"motorpool/telematics"
)

// offerRounds bounds how often a section is offered again that another instance has
// changed meanwhile. Postgres has the report in any case.
const offerRounds = 8

// offer merges reports into what Redis holds, and returns what that has changed. The rule
// of the merge is applied here; Redis only compares and sets: a section that another
// instance has replaced meanwhile comes back, and is merged and offered again.
func (t *Twins) offer(ctx context.Context, reports []report) []telematics.Change {
	if len(reports) == 0 {
		return nil
	}
	if !t.offering.mayAsk() {
		t.postpone(reports)
		return nil
	}
	t.recall(ctx, reports)
	changes := make([]telematics.Change, len(reports))
	left := make([]int, len(reports)) // positions in reports
	for i, r := range reports {
		left[i] = i
		changes[i] = telematics.Change{Vehicle: r.vehicle, Agency: r.agency, Powertrain: r.powertrain, LastSeen: r.At}
	}
	for round := 0; len(left) > 0 && round < offerRounds; round++ {
		proposals := make([]proposal, len(left))
		offers := make([]offer, len(left))
		for n, i := range left {
			proposals[n] = t.propose(reports[i])
			offers[n] = proposals[n].offer
		}
		fates, err := t.redis.offer(ctx, offers)
		if ctx.Err() == nil {
			t.offering.learn(err)
		}
		if err != nil {
			break
		}
		var again []int
		for n, i := range left {
			news, refused := t.settle(proposals[n], fates[n])
			changes[i].Fields = telematics.Join(changes[i].Fields, news)
			if refused {
				again = append(again, i)
			}
		}
		left = again
	}
	for _, i := range left {
		t.postpone(reports[i : i+1])
	}
	return slices.DeleteFunc(changes, telematics.Change.Empty)
}

// postpone keeps reports that Redis could not take. They are of use to readers and to those who
// follow what changes; nothing that counts depends on them.
func (t *Twins) postpone(reports []report) {
	t.hurry()
	for _, r := range reports {
		_ = t.late.add(r.sighting) // beyond what can be kept: the next report tells the same
	}
}

// recall makes sure that something is known of each vehicle, so that a first report is
// compared with what was known before, and not with nothing.
func (t *Twins) recall(ctx context.Context, reports []report) {
	var missing []telematics.VehicleID
	units := map[telematics.VehicleID]telematics.Unit{}
	for _, r := range reports {
		if known, ok := t.known.Peek(r.vehicle); !ok || known.unit != r.Unit {
			missing = append(missing, r.vehicle)
			units[r.vehicle] = r.Unit
		}
	}
	if len(missing) == 0 {
		return
	}
	held, err := t.redis.readLatest(ctx, missing)
	if err != nil {
		return // the first offer tells
	}
	kept, _ := t.postgres.snapshots(ctx, missing) // without it more is news than need be
	for _, id := range missing {
		known := held[id]
		if known.unit != units[id] {
			known = latest{unit: units[id]}
		}
		known.snapshot = telematics.Join(kept[id], known.snapshot)
		t.known.Add(id, known)
	}
}

// proposal is an offer, and what it was made of.
type proposal struct {
	offer
	base   latest // as Redis was thought to be
	merged telematics.Snapshot
	news   telematics.Snapshot // of other values than the base
}

// propose offers the sections of which a report has something newer, and those of which
// Redis has nothing.
func (t *Twins) propose(r report) proposal {
	base, ok := t.known.Get(r.vehicle)
	if !ok || base.unit != r.Unit {
		base = latest{unit: r.Unit}
	}
	p := proposal{offer: offer{vehicle: r.vehicle, unit: r.Unit, seen: r.At}, base: base}
	var newer []string
	p.merged, p.news, newer = base.snapshot.Advance(r.readings)
	for _, section := range sectionsIn(p.merged) {
		token := base.tokens[section]
		if token != "" && !slices.Contains(newer, section) {
			continue
		}
		row, err := encodeSection(section, p.merged)
		if err != nil {
			t.log.Error("section not encoded", "vehicle", r.vehicle, "section", section, "err", err)
			continue
		}
		p.sections = append(p.sections, sectionOffer{name: section, expected: token, row: row})
	}
	return p
}

// settle takes over what became of an offer, and returns what it has changed, and whether
// some of it must be offered again.
func (t *Twins) settle(p proposal, fate offered) (news telematics.Snapshot, again bool) {
	if fate.err != nil {
		t.log.Warn("latest state refused by redis", "vehicle", p.vehicle, "err", fate.err)
		t.known.Remove(p.vehicle)
		return nil, false
	}
	after := latest{unit: p.unit, snapshot: p.merged, tokens: maps.Clone(p.base.tokens)}
	if after.tokens == nil {
		after.tokens = map[string]string{}
	}
	for _, section := range p.sections {
		after.tokens[section.name] = fate.token
	}
	news = p.news
	if len(fate.refused) > 0 {
		after.snapshot, news = maps.Clone(p.merged), maps.Clone(p.news)
		for section, refusal := range fate.refused {
			t.yield(&after, p.base, section, refusal)
			maps.DeleteFunc(news, func(f telematics.Field, _ telematics.Reading) bool { return f.Section() == section })
		}
	}
	t.known.Add(p.vehicle, after)
	return news, len(fate.refused) > 0
}

// yield takes over a section as it is in Redis.
func (t *Twins) yield(after *latest, base latest, section string, refusal refusal) {
	var theirs telematics.Snapshot
	if refusal.token == "" {
		delete(after.tokens, section)
		t.hurry()
	} else {
		after.tokens[section] = refusal.token
		theirs, _ = decodeSection(section, refusal.row) // what cannot be read is replaced
	}
	for _, field := range fieldsOf[section] {
		delete(after.snapshot, field)
		// What was known here is true even where Redis has lost it.
		if reading, ok := telematics.Join(base.snapshot, theirs)[field]; ok {
			after.snapshot[field] = reading
		}
	}
}
