package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"motorpool/telematics"
)

// known is what this instance knows of a vehicle: never more than is true, and changed in
// place, since it changes with each report. It remembers what the others do not have yet.
type known struct {
	vehicle telematics.VehicleID
	unit    telematics.Unit

	mu       sync.Mutex // guards what follows
	owner    owner
	protocol telematics.Protocol
	seen     time.Time
	snapshot telematics.Snapshot // handed out as a copy only
	reported bool

	met      bool // what Redis and Postgres had is part of it
	sections map[string]*sectionState
	news     telematics.Snapshot // values that were not told yet
	owes     [2]bool             // by creditor: it waits in the backlog
	going    [2]bool             // likewise: it is being brought

	awaits []chan<- bool // of those who wait until Redis has what they brought
	coming []chan<- bool // likewise, while it is being brought
}

// creditor is to whom something is owed.
type creditor int

const (
	inRedis creditor = iota
	inPostgres
)

// sectionState compares a section with that in Redis.
type sectionState struct {
	token   string // of the row in Redis; empty: none that is known
	changes int    // so many times the section became newer than a row in Redis
	taken   int    // of which Redis has so many
}

func newKnown(vehicle telematics.VehicleID, unit telematics.Unit) *known {
	k := &known{
		vehicle: vehicle, unit: unit, snapshot: telematics.Snapshot{}, news: telematics.Snapshot{},
		sections: make(map[string]*sectionState, len(telematics.Sections)),
	}
	states := make([]sectionState, len(telematics.Sections))
	for i, section := range telematics.Sections {
		k.sections[section] = &states[i]
	}
	return k
}

// observe takes a sighting in, and reports to whom it is owed that nothing was owed before. Whoever waits is told
// whether Redis has it.
func (k *known) observe(s sighting, o owner, waits chan<- bool) (toRedis, toPostgres bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owner, k.protocol = o, s.Protocol
	if s.At.After(k.seen) {
		k.seen = s.At
	}
	if s.Report != nil {
		k.reported = true
		for field, value := range s.Report.Values {
			k.take(field, telematics.Reading{Value: value, At: s.Report.At})
		}
	}
	if waits != nil {
		k.awaits = append(k.awaits, waits)
	}
	toRedis, k.owes[inRedis] = !k.owes[inRedis], true
	toPostgres, k.owes[inPostgres] = !k.owes[inPostgres], true
	return toRedis, toPostgres
}

func (k *known) take(field telematics.Field, reading telematics.Reading) {
	newer, changed := k.snapshot.Take(field, reading)
	if newer {
		k.sections[field.Section()].changes++
	}
	if changed {
		k.news[field] = reading
	}
}

// owe notes that something could not be brought where it is owed, and reports that nothing
// was owed there meanwhile.
func (k *known) owe(to creditor) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	first := !k.owes[to]
	k.owes[to] = true
	return first
}

func (k *known) begin(to creditor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owes[to], k.going[to] = false, true
	if to == inRedis {
		k.coming, k.awaits = append(k.coming, k.awaits...), nil
	}
}

// arrived tells those who wait whether Redis has what was being brought.
func (k *known) arrived(there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, waits := range k.coming {
		waits <- there // it holds one
	}
	k.coming = nil
}

func (k *known) end(to creditor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.going[to] = false
}

func (k *known) isOwed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owes != [2]bool{} || k.going != [2]bool{}
}

// lost notes that Redis has nothing of the vehicle, so that all of it is offered next, and
// reports whether it had something.
func (k *known) lost() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	had := false
	for _, state := range k.sections {
		had, state.token = had || state.token != "", ""
	}
	return had
}

func (k *known) hasMet() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.met
}

func (k *known) change(fields telematics.Snapshot) telematics.Change {
	k.mu.Lock()
	defer k.mu.Unlock()
	return telematics.Change{
		Vehicle: k.vehicle, Agency: k.owner.agency, Powertrain: k.owner.powertrain, Fields: fields, LastSeen: k.seen,
	}
}

// latest returns what is known, as a copy.
func (k *known) latest() latest {
	k.mu.Lock()
	defer k.mu.Unlock()
	return latest{unit: k.unit, seen: k.seen, snapshot: maps.Clone(k.snapshot)}
}

// debt returns what Postgres is owed.
func (k *known) debt() sighting {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := sighting{vehicle: k.vehicle, readings: maps.Clone(k.snapshot)}
	s.Unit, s.At, s.Protocol = k.unit, k.seen, k.protocol
	if k.reported {
		s.Report = &telematics.Report{}
	}
	return s
}

// meet takes in what Redis and Postgres have. What Redis has was told by whoever brought it. What Postgres alone has
// was not: an instance that reported it has yet to bring it to Redis, and will find it there, so that it is told here.
// Redis forgets a vehicle that is silent for long, and of that everybody was told.
func (k *known) meet(held latest, kept telematics.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if held.unit != k.unit {
		held = latest{}
	}
	told := maps.Clone(held.snapshot)
	if told == nil {
		told = telematics.Snapshot{}
	}
	for field, reading := range kept {
		k.snapshot.Take(field, reading)
		if held.tokens[field.Section()] == "" && k.seen.Sub(reading.At) > latestFor {
			told[field] = reading
		}
	}
	for field, reading := range held.snapshot {
		k.snapshot.Take(field, reading)
	}
	for field, mine := range k.snapshot {
		if theirs, ok := told[field]; ok && field.Same(mine.Value, theirs.Value) {
			delete(k.news, field)
		} else {
			k.news[field] = mine
		}
	}
	for section, state := range k.sections {
		state.token = held.tokens[section]
		state.changes++ // which of them Redis lacks is not worth the comparison
	}
	k.met = true
}

// compare takes in a reading that others have, and reports whether what is known here is newer.
func (k *known) compare(field telematics.Field, theirs telematics.Reading) (ahead bool) {
	newer, _ := k.snapshot.Take(field, theirs)
	mine := k.snapshot[field]
	if newer || field.Same(mine.Value, theirs.Value) {
		delete(k.news, field)
	} else {
		k.news[field] = mine
	}
	return !newer && mine.At.After(theirs.At) || !telematics.SameValue(mine.Value, theirs.Value)
}

// proposal is what is offered to Redis of a vehicle.
type proposal struct {
	*known
	offer
	changes map[string]int // of the sections, when they were offered
}

func (k *known) has(section string) bool {
	return slices.ContainsFunc(fieldsOf[section], func(f telematics.Field) bool { _, ok := k.snapshot[f]; return ok })
}

// settle takes over what became of a proposal: what is told, now that Redis has it, and whether some of it
// must be offered again.
func (p proposal) settle(fate offered) (news telematics.Snapshot, again, emptied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	news = telematics.Snapshot{}
	for _, o := range p.offer.sections {
		state := p.known.sections[o.name]
		refusal, refused := fate.refused[o.name]
		switch {
		case !refused:
			state.token, state.taken = fate.token, p.changes[o.name]
			for _, field := range fieldsOf[o.name] {
				if reading, ok := p.news[field]; ok {
					news[field] = reading
					delete(p.news, field)
				}
			}
		case refusal.token == "":
			state.token, again, emptied = "", true, true
		default:
			state.token = refusal.token
			again = p.yield(o.name, refusal) || again
		}
	}
	return news, again, emptied
}

// yield takes in a section as another instance has written it, and reports whether more is
// known here. What this one wrote without hearing so is offered again, and told then.
func (k *known) yield(section string, refusal refusal) bool {
	theirs, err := decodeSection(section, refusal.row)
	ahead := err != nil || refusal.ours // what cannot be read is replaced
	for _, field := range fieldsOf[section] {
		reading, has := theirs[field]
		_, mine := k.snapshot[field]
		switch {
		case has && refusal.ours:
			k.snapshot.Take(field, reading)
		case has:
			ahead = k.compare(field, reading) || ahead
		case mine:
			ahead = true
		}
	}
	state := k.sections[section]
	if state.taken = state.changes; ahead {
		state.changes++
	}
	return ahead
}
