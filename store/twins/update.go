package twins

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"motorpool/telematics"
)

// hotState is the state of a vehicle as this instance has written it to Redis. It is kept while
// the vehicle reports often, so that it need not be read for each report, and is not lost with
// Redis. It is not changed any more.
type hotState struct {
	redisState
	owner owner
	lost  bool // Redis does not have it any more
}

// update is an attempt to write what is pending of a vehicle, on the condition that its state in
// Redis has not changed since it was read.
type update struct {
	*pending
	held    redisState
	after   telematics.Snapshot // what Redis has afterwards
	rows    [][]byte            // by the section's place; empty: it stays
	token   string
	changed telematics.Snapshot // to be published
	urgent  bool                // an urgent field has changed
	dueNow  bool                // in Postgres

	base    base      // of a state that was just loaded from Postgres; else empty
	offline bool      // likewise: the unit was offline or asleep
	before  time.Time // likewise: when the unit was seen
}

// newUpdate merges what is pending into the state that was read from Redis (held), with what this
// instance has kept of it, which Redis may have lost, and with the state in Postgres: nil where
// Redis includes that, or Postgres could not be read. The error names the sections that could not
// be encoded; the others are in the update.
//
// Readings in Redis were published by the instance that wrote them. Readings only in Postgres were
// not: the instance that flushed them has yet to write them to Redis, and will find them there, so
// this instance publishes them. But Redis expires the state of a vehicle that is silent for long,
// and all of that was published.
func newUpdate(p *pending, held redisState, kept *hotState, inPostgres *storedTwin, token string) (update, error) {
	u := update{pending: p, held: held, after: held.snapshot, token: token, changed: telematics.NewSnapshot()}
	if u.after == nil {
		u.after = telematics.NewSnapshot()
	}
	u.rows = make([][]byte, len(telematics.Sections))
	touched := make([]bool, len(telematics.Sections))
	for field, reading := range u.after.All() {
		if reading.At.Before(p.owner.unitMovedAt) {
			u.after[field], touched[field.SectionPlace()] = telematics.Reading{}, true
		}
	}
	keep := func(field telematics.Field, reading telematics.Reading) (changed bool) {
		newer, changed := u.after.KeepNewer(field, reading)
		touched[field.SectionPlace()] = touched[field.SectionPlace()] || newer
		return changed && !field.IsOfArrival()
	}
	if kept != nil {
		for field, reading := range kept.snapshot.Since(p.owner.unitMovedAt).All() {
			keep(field, reading)
		}
		u.dueNow = slices.Contains(touched, true)
	}
	if inPostgres != nil {
		u.base, u.before, u.offline = inPostgres.base, inPostgres.seen, inPostgres.offline
		for field, reading := range inPostgres.snapshot.All() {
			wasPublished := held.token(field.SectionPlace()) == "" && p.At.Sub(reading.At) > stateTTL
			if keep(field, reading) && !wasPublished {
				u.changed[field] = reading
			}
		}
	}
	for field, reading := range p.attempt.changed.All() {
		if held.token(field.SectionPlace()) == p.attempt.token {
			u.changed[field] = reading
		}
	}
	before, located := u.after.Position()
	for field, reading := range p.all() {
		if keep(field, reading) {
			u.changed[field] = reading
			u.urgent = u.urgent || slices.Contains(urgentFields, field)
		}
	}
	if now, is := u.after.Position(); located && is && now != before {
		ignition := u.after.Text(telematics.Ignition)
		u.urgent = u.urgent || ignition != nil && *ignition == "off" && now.Metres(before) > urgentMetres
	}
	var errs error
	for place := range touched {
		if touched[place] {
			row, err := encodeSection(place, u.after)
			u.rows[place], errs = row, errors.Join(errs, err)
		}
	}
	if errs != nil {
		u.base = ""
	}
	return u, errs
}

// written returns the state that Redis has after the update.
func (u update) written() *hotState {
	s := hotState{redisState: u.held, owner: u.owner}
	s.unit, s.snapshot, s.base = u.Unit, u.after, u.base
	s.tokens = make([]string, len(telematics.Sections))
	for place, row := range u.rows {
		if s.tokens[place] = u.held.token(place); len(row) > 0 {
			s.tokens[place] = u.token
		}
	}
	if u.At.After(s.seen) {
		s.seen = u.At
	}
	s.base = cmp.Or(s.base, u.held.base)
	return &s
}

func (u update) change() telematics.Change {
	return telematics.Change{
		Vehicle: u.vehicle, Agency: u.owner.agency, Powertrain: u.owner.powertrain, Fields: u.changed, LastSeen: u.At,
	}
}
