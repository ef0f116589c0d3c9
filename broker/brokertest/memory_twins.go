package brokertest

import (
	"context"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Run implements ingest.Twins. It does nothing, as every instance sees what Observe stores.
func (m *Memory) Run(ctx context.Context, _ func([]telematics.Change)) error {
	<-ctx.Done()
	return nil
}

// Report implements ingest.Twins.
func (m *Memory) Report(o delivery.Observation) func(context.Context) (delivery.Seen, error) {
	return Report(m, o)
}

// Report calls Observe with one report, concurrently, for 3 s at most.
func Report(twins Observer, o delivery.Observation) func(context.Context) (delivery.Seen, error) {
	var seen delivery.Seen
	wait := Begin(func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		seen, err = twins.Observe(ctx, []delivery.Observation{o})
		return err
	})
	return func(ctx context.Context) (delivery.Seen, error) {
		if err := wait(ctx); err != nil {
			return delivery.Seen{}, err
		}
		return seen, nil
	}
}

// Observe implements ingest.Twins.
func (m *Memory) Observe(ctx context.Context, observations []delivery.Observation) (delivery.Seen, error) {
	if err := m.enter(ctx, "Observe"); err != nil {
		return delivery.Seen{}, err
	}
	defer m.mu.Unlock()
	built := map[telematics.Unit]telematics.VehicleID{}
	for id, twin := range m.twins {
		built[twin.Unit] = id
	}
	var seen delivery.Seen
	for _, o := range observations {
		id, ok := built[o.Unit]
		if !ok || o.Unit == "" {
			if !slices.Contains(seen.Unknown, o.Unit) {
				seen.Unknown = append(seen.Unknown, o.Unit)
			}
			continue
		}
		twin := m.twins[id]
		if !o.Protocol.Means(twin.Protocol) {
			if !slices.Contains(seen.Foreign, o.Unit) {
				seen.Foreign = append(seen.Foreign, o.Unit)
			}
			continue
		}
		o.At = storedTime(o.At)
		seen.CountPresence(twin.Contact, o)
		twin.Contact = o.Contact(twin.Contact)
		change := telematics.Change{Vehicle: id, Agency: twin.AgencyID, Powertrain: twin.Powertrain, LastSeen: twin.Contact.LastSeen}
		if o.Report != nil && len(o.Report.Values) > 0 {
			merged, fresh := twin.Snapshot.Clone(), telematics.NewSnapshot()
			for field, reading := range o.Report.Readings() {
				if _, changed := merged.KeepNewer(field, reading); changed && !field.IsOfArrival() {
					fresh[field] = reading
				}
			}
			change.Fields = fresh
			twin.Snapshot = merged
		}
		if o.Report != nil {
			change.Alarms = o.Report.Alarms
		}
		m.twins[id] = twin
		if !change.Empty() {
			seen.Changes = append(seen.Changes, change)
		}
	}
	// After all observations of a unit, as its connectivity may end as it began.
	for _, unit := range observedUnits(observations) {
		if id, ok := built[unit]; ok && unit != "" {
			seen.Changes = append(seen.Changes, m.announce(id)...)
		}
	}
	return seen, nil
}

func observedUnits(observations []delivery.Observation) []telematics.Unit {
	var units []telematics.Unit
	for _, o := range observations {
		if !slices.Contains(units, o.Unit) {
			units = append(units, o.Unit)
		}
	}
	return units
}

// announce returns the change of a vehicle's connectivity since it was last published, if there is
// one. It needs the lock.
func (m *Memory) announce(id telematics.VehicleID) []telematics.Change {
	twin := m.twins[id]
	is := twin.Contact.At(time.Now())
	if is == m.announced[id] {
		return nil
	}
	m.announced[id] = is
	return []telematics.Change{
		{Vehicle: id, Agency: twin.AgencyID, Powertrain: twin.Powertrain, Presence: is, LastSeen: twin.Contact.LastSeen},
	}
}

// Aged implements ingest.Contacts.
func (m *Memory) Aged(ctx context.Context) ([]telematics.Change, error) {
	if err := m.enter(ctx, "Aged"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var aged []telematics.Change
	for id := range m.twins {
		aged = append(aged, m.announce(id)...)
	}
	return aged, nil
}
