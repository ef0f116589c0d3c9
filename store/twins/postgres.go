package twins

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// observation is one observation of a unit, or several merged into one.
type observation struct {
	delivery.Observation
	readings telematics.Snapshot // each with its own time
	reports  int
	// Raised by the unit, and when at the latest.
	alarms  []telematics.Alarm
	alarmed time.Time
	// The vehicle that the readings are of, whose unit and protocol were looked up; zero: the
	// present vehicle of the unit.
	vehicle telematics.VehicleID
	base    base // that the readings include; empty: Postgres may have more
}

func newObservation(o delivery.Observation) observation {
	merged := observation{Observation: o}
	merged.At = pg.FromTimestamp(pg.Timestamp(o.At)) // cut like stored times
	if o.Report != nil {
		merged.readings, merged.reports = telematics.Merge(nil, *o.Report), 1
		merged.alarms, merged.alarmed = o.Report.Alarms, o.Report.At
	}
	return merged
}

// merge returns two observations of a unit as one.
func (o observation) merge(other observation) observation {
	if o.Unit == "" {
		return other
	}
	if o.At.After(other.At) {
		other.At = o.At
	}
	other.reports += o.reports
	other.readings = telematics.Join(o.readings, other.readings)
	if len(o.alarms) > 0 {
		all := slices.Concat(o.alarms, other.alarms)
		other.alarms = all[:min(len(all), alarmsKept)]
		other.alarmed = slices.MaxFunc([]time.Time{o.alarmed, other.alarmed}, time.Time.Compare)
	}
	return other
}

// since returns an observation of a unit that was not looked up without what it reported of the
// time before it or its vehicle was moved.
func (o observation) since(moved time.Time) observation {
	o.Observation, o.readings = owner{movedAt: moved}.of(o.Observation), o.readings.Since(moved)
	if o.alarmed.Before(moved) {
		o.alarms = nil
	}
	return o
}

// contact returns the contact c as it is after the observation.
func (o observation) contact(c telematics.Contact) telematics.Contact {
	if o.Presence != nil {
		return o.Contact(c)
	}
	return c.ReportedTimes(o.reports, o.At)
}

// stored reads and writes the contacts and the snapshots in Postgres.
type stored struct{ *pg.DB }

// Store writes observations to Postgres directly, for programs that have no Redis. They are
// committed when it returns.
func Store(ctx context.Context, db *pg.DB, observations []delivery.Observation) (delivery.Seen, error) {
	return stored{db}.observeAll(ctx, pg.Map(observations, newObservation))
}

// observeAll is observe, and tries those again whose units are locked.
func (p stored) observeAll(ctx context.Context, observations []observation) (all delivery.Seen, err error) {
	for retries := p.NewRetries(); ; {
		seen, left, err := p.observe(ctx, observations)
		locked := seen.Locked
		seen.Locked = nil
		addSeen(&all, seen)
		if err != nil || len(locked) == 0 {
			return all, err
		}
		if !retries.Next(ctx) {
			all.Locked = locked
			return all, p.lockedError(ctx, all)
		}
		observations = left
	}
}

// observe merges observations into the contacts of units and the snapshots of their vehicles,
// whatever the order of arrival [LAW-7]. They are committed when observe returns, except those
// that it returns: these may be stored later, because another transaction has locked their units,
// or because of the error. That also names the units whose observations were refused.
func (p stored) observe(ctx context.Context, observations []observation) (seen delivery.Seen, left []observation, err error) {
	seen, _, left, err = p.write(ctx, observations)
	return seen, left, err
}

// committed is a snapshot that Postgres has after an observation.
type committed struct {
	vehicle telematics.VehicleID
	version int64
	more    bool // it has readings that were not observed
}

// write is observe, and also returns what it has committed.
func (p stored) write(
	ctx context.Context, observations []observation,
) (seen delivery.Seen, done []committed, left []observation, err error) {
	if len(observations) == 0 {
		return delivery.Seen{}, nil, nil, nil
	}
	var refused []error
	left, err = pg.InParts(p.DB, observations, func(part []observation) error {
		some, written, err := p.writeTogether(ctx, part)
		addSeen(&seen, some)
		done = append(done, written...)
		return err
	}, func(o observation, err error) {
		refused = append(refused, unavailable.Wrap("observe unit "+string(o.Unit), err))
	})
	for _, o := range observations {
		if slices.Contains(seen.Locked, o.Unit) {
			left = append(left, o)
		}
	}
	return seen, done, left, errors.Join(append(refused, unavailable.Wrap("observe vehicles", err))...)
}

// lockedError counts locked units, and returns an error that names the lock of the first; nil:
// none.
func (p stored) lockedError(ctx context.Context, seen delivery.Seen) error {
	if len(seen.Locked) == 0 {
		return nil
	}
	return p.RowLocked(ctx, "unit "+string(seen.Locked[0]), "units", "serial", string(seen.Locked[0]))
}

func addSeen(all *delivery.Seen, seen delivery.Seen) {
	for _, unit := range seen.Unknown {
		all.Unknown = appendNew(all.Unknown, unit)
	}
	for _, unit := range seen.Foreign {
		all.Foreign = appendNew(all.Foreign, unit)
	}
	for _, unit := range seen.Locked {
		all.Locked = appendNew(all.Locked, unit)
	}
	all.Changes = append(all.Changes, seen.Changes...)
	all.Ghosts, all.Overtaken = all.Ghosts+seen.Ghosts, all.Overtaken+seen.Overtaken
	all.Reconnected = append(all.Reconnected, seen.Reconnected...)
}

func appendNew(units []telematics.Unit, unit telematics.Unit) []telematics.Unit {
	if slices.Contains(units, unit) {
		return units
	}
	return append(units, unit)
}

// updateState locks the unit before its snapshot, as observeIn does, so that neither can
// overwrite what the other has merged meanwhile.
var updateState = `
	with unit as (
		update units u set last_seen = $3, gap_ms = $4, check_at = ` + vehicles.CheckAfterReport + `
		where serial = $1 and vehicle_id = $2 and last_seen is not distinct from $5
		returning vehicle_id)
	update snapshots s set fields = $6, updated_at = clock_timestamp()
	from unit
	where s.vehicle_id = unit.vehicle_id and s.fields = $7`

// update replaces the state before, as it was read, by the state after: in one round trip if
// Postgres still has the state before, else as an observation. It is committed when update
// returns.
func (p stored) update(ctx context.Context, before, after telematics.Twin) error {
	old, errOld := vehicles.EncodeSnapshot(before.Snapshot)
	fields, errNew := vehicles.EncodeSnapshot(after.Snapshot)
	if err := errors.Join(errOld, errNew); err != nil {
		return err
	}
	contact := before.Contact.Reported(after.Contact.LastSeen)
	n, err := pg.Affected(p.Prepared.ExecContext(ctx, updateState, string(after.Unit), int64(after.ID),
		pg.Timestamp(contact.LastSeen), pg.Nullable(contact.Gap.Milliseconds()), pg.Timestamp(before.Contact.LastSeen),
		string(fields), string(old)))
	if err != nil || n == 1 {
		return unavailable.Wrap("store reported state", err)
	}
	o := observation{vehicle: after.ID, readings: after.Snapshot, reports: 1}
	o.Unit, o.At = after.Unit, contact.LastSeen
	_, err = p.observeAll(ctx, []observation{o})
	return err
}

// observedUnit is a unit, with its vehicle, while observations are merged into it.
type observedUnit struct {
	serial    telematics.Unit
	protocol  telematics.Protocol
	change    telematics.Change // of its vehicle
	announced telematics.PresenceStatus
	spoke     bool // it has sent presence
	contact   telematics.Contact
	// As in telematics.Twin.
	movedAt, unitMovedAt time.Time

	observed bool
	heard    bool                // its latest sign of life is newer
	snapshot telematics.Snapshot // nil where the observation includes it
	version  int64               // of the snapshot in Postgres; zero: there is none
	newer    bool                // the snapshot has readings that Postgres does not have
	more     bool                // it has readings that were not observed
}

// writeTogether is one transaction: compare-and-set under the locks of the units [LAW-7]. It
// waits for none: a unit that another transaction has locked is in the result.
func (p stored) writeTogether(ctx context.Context, observations []observation) (seen delivery.Seen, done []committed, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	err = p.Prepared.Within(ctx, func(ctx context.Context, tx *sqlx.Tx) (err error) {
		seen, done, err = writeIn(ctx, tx, observations)
		return err
	})
	if err != nil {
		return delivery.Seen{}, nil, err
	}
	return seen, done, nil
}

func writeIn(ctx context.Context, tx *sqlx.Tx, observations []observation) (delivery.Seen, []committed, error) {
	units, locked, err := lockUnits(ctx, tx, observations)
	if err != nil {
		return delivery.Seen{}, nil, err
	}
	seen := delivery.Seen{Locked: locked}
	observations = slices.DeleteFunc(slices.Clone(observations), func(o observation) bool {
		unit, ok := units[o.Unit]
		switch {
		case !ok && slices.Contains(locked, o.Unit):
		case !ok:
			seen.Unknown = appendNew(seen.Unknown, o.Unit)
		case o.vehicle == 0 && !o.Protocol.Means(unit.protocol):
			seen.Foreign = appendNew(seen.Foreign, o.Unit)
		default: // or the unit has moved to another vehicle, and perhaps come back since
			return o.vehicle != 0 && (o.vehicle != unit.change.Vehicle || o.At.Before(unit.unitMovedAt))
		}
		return true
	})
	for i, o := range observations {
		if o.vehicle == 0 {
			observations[i] = o.since(units[o.Unit].movedAt)
		}
	}
	if err := readSnapshots(ctx, tx, units, observations); err != nil {
		return delivery.Seen{}, nil, err
	}
	for _, o := range observations {
		unit := units[o.Unit]
		seen.CountPresence(unit.contact, o.Observation)
		unit.observe(o)
		unit.spoke = unit.spoke || o.Presence != nil
		unit.change.Alarms = append(unit.change.Alarms, o.alarms...)
	}
	maps.DeleteFunc(units, func(_ telematics.Unit, unit *observedUnit) bool { return !unit.observed })
	now := time.Now()
	for _, unit := range units {
		unit.announce(now)
	}
	if err := writeUnits(ctx, tx, units); err != nil {
		return delivery.Seen{}, nil, err
	}
	var done []committed
	for _, unit := range units {
		done = append(done, committed{vehicle: unit.change.Vehicle, version: unit.version, more: unit.more})
		if !unit.change.Empty() {
			seen.Changes = append(seen.Changes, unit.change)
		}
	}
	return seen, done, nil
}

// announce notes the unit's connectivity, where a presence message has changed it: the instance
// that stores it publishes it. Changes by reports are left to vehicles.Fleet.Aged.
func (u *observedUnit) announce(now time.Time) {
	if is := u.contact.At(now); u.spoke && is != u.announced {
		u.announced, u.change.Presence = is, is
	}
}

func (u *observedUnit) observe(o observation) {
	contact, before := o.contact(u.contact), u.snapshot
	u.observed, u.heard = true, u.heard || contact.LastSeen.After(u.contact.LastSeen)
	u.contact, u.change.LastSeen = contact, contact.LastSeen
	switch {
	case o.readings.Empty():
	case before == nil:
		u.snapshot, u.newer = o.readings, true // nothing modifies the readings any more
	default:
		u.snapshot = telematics.Join(before, o.readings)
		u.newer, u.more = u.newer || differ(u.snapshot, before), u.more || differ(u.snapshot, o.readings)
	}
}

// differ reports whether a snapshot has other readings than one that it was made from.
func differ(joined, from telematics.Snapshot) bool {
	for field, reading := range joined.All() {
		r := from.Of(field)
		if !from.Has(field) || !r.At.Equal(reading.At) || r.Once != reading.Once || !telematics.SameValue(r.Value, reading.Value) {
			return true
		}
	}
	return false
}
