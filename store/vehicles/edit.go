package vehicles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Edit adds or changes a vehicle or a station, or changes tariffs or rental rules of an agency, by
// the rules of a fleet file, and adds the entry to the audit log, in one transaction, and others
// for what loses by it (see splitEntries); none where nothing of an agency changes. The actor of
// the entry must see the vehicle, station or agency as it was; the caller checks what it becomes.
// Its error is a *telematics.Error, or one or several *rental.FieldError.
func (f *Fleet) Edit(ctx context.Context, e telematics.FleetEdit) (done telematics.FleetEdited, err error) {
	err = pg.WithinLocks(ctx, f.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockImports); err != nil {
			return err
		}
		// Its maintenance must not end between the read and the write.
		if _, err := tx.ExecContext(ctx, `select from vehicles where id = $1 for no key update`, int64(e.Vehicle)); err != nil {
			return err
		}
		changes := changesOf(e)
		on, err := readRecord(ctx, tx, changes)
		if err == nil {
			err = checkExists(e, on)
		}
		if err != nil {
			return err
		}
		file, err := changes.over(on)
		if err == nil {
			err = checkReason(changes, file, on)
		}
		if err != nil {
			return err
		}
		if err := writeEdit(ctx, tx, file, e.Entry.Actor.Subject); err != nil {
			return err
		}
		changed := file.differences(on)
		done.Changes = append([]string{}, Sentences(changed)...)
		if e.Agency != 0 && len(done.Changes) == 0 {
			return nil
		}
		own, others := splitEntries(e, changed, on)
		entry := e.Entry
		entry.Outcome, entry.Details = telematics.Executed, map[string]any{"changes": own}
		entry.Agency = e.Agency
		for _, s := range file.Stations {
			done.Station, entry.Agency = s, s.AgencyID
		}
		for _, v := range file.Vehicles {
			entry.Agency, entry.Vehicle = v.AgencyID, v.ID
			if v.Maintenance.Reason != "" && v.Status != "" {
				entry.Details["reason"] = v.Maintenance.Reason
			}
			if done.Bookings, err = bookingsInMaintenance(ctx, tx, v.ID); err != nil {
				return err
			}
		}
		return activity.Insert(ctx, tx, append(others, entry)...)
	})
	if problems := fieldErrors(err); problems != nil {
		return telematics.FleetEdited{}, problems
	}
	return done, unavailable.Wrap("edit the fleet", err)
}

// splitEntries returns what an edit changes of its object, and an entry for the vehicle from which
// it takes a unit, and for the agency that the object leaves: its staff must find that, and read
// nothing of other agencies.
func splitEntries(e telematics.FleetEdit, changed []Difference, on record) (own []string, others []telematics.Activity) {
	isOther := func(d Difference) bool { return e.Vehicle != 0 && d.Object != fmt.Sprint("vehicle ", e.Vehicle) }
	for _, d := range changed {
		entry := e.Entry
		switch leaves := d.Field == "agency_id" && !d.New; {
		case isOther(d):
			left := on.units[telematics.Unit(d.From)]
			entry.Agency, entry.Vehicle = left.agency, left.vehicle
		case leaves:
			entry.Agency, entry.Vehicle = cmp.Or(on.vehicles[e.Vehicle].AgencyID, on.stations[e.Station].AgencyID), e.Vehicle
		default:
			continue
		}
		entry.Outcome, entry.Details = telematics.Executed, map[string]any{"changes": Sentences([]Difference{d})}
		others = append(others, entry)
	}
	return append([]string{}, Sentences(slices.DeleteFunc(changed, isOther))...), others
}

// checkReason returns an error for a vehicle that a person puts into maintenance without a reason,
// which a fleet file need not say.
func checkReason(c FleetChanges, file FleetFile, on record) error {
	for i, v := range file.Vehicles {
		status, reason := c.vehicles[i].fields["status"], c.vehicles[i].fields["reason"]
		if (status != nil || reason != nil) && strings.TrimSpace(v.Maintenance.Reason) == "" &&
			cmp.Or(v.Status, on.vehicles[v.ID].Status) == telematics.Maintenance {
			return errors.Join(problem{"", "reason", "say why the vehicle is in maintenance"})
		}
	}
	return nil
}

// bookingsInMaintenance returns how many bookings are in the time of a vehicle's maintenance; nil:
// it is not in maintenance.
func bookingsInMaintenance(ctx context.Context, tx *sqlx.Tx, id telematics.VehicleID) (*int, error) {
	var counts []int
	err := tx.SelectContext(ctx, &counts, `
		select (select count(*) from bookings b where b.vehicle_id = v.id and (b.state = 'active'
			or b.state = 'upcoming' and b.start_at < coalesce(v.maintenance_until, 'infinity')))
		from vehicles v where v.id = $1 and v.status = 'maintenance'`, id)
	if err != nil || len(counts) == 0 {
		return nil, err
	}
	return &counts[0], nil
}

// writeEdit writes neither agencies nor areas: the service may not change the former, and an edit
// has none of the latter.
func writeEdit(ctx context.Context, tx *sqlx.Tx, file FleetFile, by string) error {
	_, err := importTariffs(ctx, tx, file, by)
	if err == nil {
		_, err = importRules(ctx, tx, file)
	}
	if err == nil {
		_, err = importStations(ctx, tx, file)
	}
	if err == nil {
		_, err = importVehicles(ctx, tx, file.Vehicles, file.Rates, by)
	}
	if err == nil {
		_, err = importUnits(ctx, tx, file.Vehicles)
	}
	return err
}

// changesOf returns the edit as the changes of a fleet file. Its problems have no place but their
// fields.
func changesOf(e telematics.FleetEdit) FleetChanges {
	c := FleetChanges{claimed: map[telematics.Unit]telematics.VehicleID{}}
	p := newPart("", e.Fields, &c.problems)
	if p.fields == nil {
		return c
	}
	p.number = int64(e.Station)
	list := &c.stations
	if e.Vehicle != 0 {
		p.number, list = int64(e.Vehicle), &c.vehicles
		c.claim(p)
	}
	if e.Agency != 0 {
		p.number, list = int64(e.Agency), &c.agencies
	}
	p.fields["id"] = json.RawMessage(fmt.Sprint(p.number))
	*list = append(*list, p)
	return c
}

// checkExists returns an error for what is added and on record already, and for what is changed and
// not on record, or not the actor's to see.
func checkExists(e telematics.FleetEdit, on record) error {
	if _, known := on.agencies[e.Agency]; e.Agency != 0 && (!known || !e.Entry.Actor.Sees(e.Agency)) {
		return telematics.NoSuchAgency(e.Agency)
	} else if e.Agency != 0 {
		return nil
	}
	vehicle, known := on.vehicles[e.Vehicle]
	agency, what, missing := vehicle.AgencyID, fmt.Sprintf("vehicle %d", e.Vehicle), telematics.VehicleNotFound
	if e.Vehicle == 0 {
		var station telematics.Station
		station, known = on.stations[e.Station]
		agency, what, missing = station.AgencyID, fmt.Sprintf("station %d", e.Station), telematics.StationNotFound
	}
	switch {
	case e.New && known:
		return &telematics.Error{
			Code:    telematics.IDTaken,
			Message: fmt.Sprintf("There is a %s already: choose another id, or change that one.", what),
		}
	case !e.New && (!known || !e.Entry.Actor.Sees(agency)):
		return &telematics.Error{Code: missing, Message: fmt.Sprintf("There is no %s.", what)}
	}
	return nil
}

// fieldErrors returns the problems of a fleet file in an error; nil: it has none.
func fieldErrors(err error) error {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var fields []error
	for _, err := range several.Unwrap() {
		if p, ok := errors.AsType[problem](err); ok {
			fields = append(fields, &rental.FieldError{Field: p.key, Message: "is not valid: " + p.message})
		}
	}
	return errors.Join(fields...)
}
