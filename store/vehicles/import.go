package vehicles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/guard"
	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Imported counts what an import added or changed.
type Imported struct {
	Agencies, Areas, Stations, Vehicles, Units int
	Tariffs                                    int // versions of them
	Rules                                      int // agencies with other rental rules
}

// String returns the counts for an operator, without those that are zero.
func (i Imported) String() string {
	var counts []string
	for _, c := range []struct {
		n         int
		one, more string
	}{
		{i.Agencies, "agency", "agencies"}, {i.Tariffs, "tariff", "tariffs"},
		{i.Rules, "set of rental rules", "sets of rental rules"}, {i.Areas, "area", "areas"},
		{i.Stations, "station", "stations"}, {i.Vehicles, "vehicle", "vehicles"},
		{i.Units, "unit", "units"},
	} {
		switch c.n {
		case 0:
		case 1:
			counts = append(counts, "1 "+c.one)
		default:
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.more))
		}
	}
	if counts == nil {
		return "nothing to import: all of the file is on record already"
	}
	return "added or changed: " + strings.Join(counts, ", ")
}

// Import writes agencies, stations and vehicles with all their fields. Rows that the file does not
// name stay as they are. The file sets what a vehicle costs, and whether it is withdrawn
// (maintenance, inactive); the status of any other vehicle with bookings follows those.
// A unit that has another vehicle in the file moves there. Its contact is cleared then, and also
// where it has another protocol in the file.
//
// Import runs while vehicles are commanded. It locks the rows that differ from the file, in
// transactions that are short enough for a claim to wait for them, and tries one again later that
// would wait for others: as long as another transaction holds a row, Import goes on until the
// context ends. Where it ends early, a part is written, and the next import of the file writes
// the rest.
func (f *Fleet) Import(ctx context.Context, file FleetFile) (Imported, error) {
	imported, err := f.importFile(ctx, file, asItIs, "")
	return imported, unavailable.Wrap("import fleet", err)
}

// completion returns the fields of a part of a file as they are to be written by a transaction.
type completion func(ctx context.Context, tx *sqlx.Tx, part FleetFile) (FleetFile, error)

func asItIs(_ context.Context, _ *sqlx.Tx, part FleetFile) (FleetFile, error) { return part, nil }

// FleetPlan is what an import of a fleet file changes.
type FleetPlan struct {
	Differences []Difference

	changes FleetChanges
	file    FleetFile
}

// Plan compares a fleet file with the record, and changes nothing. Its error names every problem of
// the file, one a line.
func (f *Fleet) Plan(ctx context.Context, changes FleetChanges) (FleetPlan, error) {
	db, err := f.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return FleetPlan{}, err
	}
	defer db.Close()
	return planOver(ctx, db, changes)
}

func planOver(ctx context.Context, db pg.Querier, changes FleetChanges) (FleetPlan, error) {
	on, err := readRecord(ctx, db, changes)
	if err != nil {
		return FleetPlan{}, unavailable.Wrap("read what a fleet file changes", err)
	}
	file, err := changes.over(on)
	if err != nil {
		return FleetPlan{}, err
	}
	problems, err := changes.tooManyAreas(ctx, db, file)
	if err != nil {
		return FleetPlan{}, unavailable.Wrap("count areas", err)
	}
	left, err := bookingsLeftBehind(ctx, db, file.Vehicles)
	if err != nil {
		return FleetPlan{}, unavailable.Wrap("read the bookings of vehicles that come to another agency", err)
	}
	for _, l := range left {
		i := slices.IndexFunc(file.Vehicles, func(v telematics.Vehicle) bool { return v.ID == l.Vehicle })
		problems = append(problems, problem{changes.vehicles[i].place, "agency_id", "the vehicle " + l.String()})
	}
	if len(problems) > 0 {
		return FleetPlan{}, errors.Join(problems...)
	}
	return FleetPlan{file.differences(on), changes, file}, nil
}

// Apply writes what a plan changes, as Import does, and then one entry of the audit log with the
// counts, also where it ends early. Fields that the file does not name stay as they are by then.
func (f *Fleet) Apply(ctx context.Context, plan FleetPlan, by telematics.Author) (Imported, error) {
	imported, err := f.importFile(ctx, plan.file, func(ctx context.Context, tx *sqlx.Tx, part FleetFile) (FleetFile, error) {
		changes := plan.changes.only(part)
		on, err := readRecord(ctx, tx, changes)
		if err != nil {
			return FleetFile{}, err
		}
		return changes.over(on)
	}, by.Subject)
	return imported, unavailable.Wrap("import fleet", errors.Join(err, f.recordImport(ctx, by, imported, err)))
}

// recordImport adds the entry of an import to the audit log, also after ctx has ended.
func (f *Fleet) recordImport(ctx context.Context, by telematics.Author, imported Imported, failure error) error {
	entry := telematics.Activity{
		At: time.Now(), Actor: by.Actor, RequestID: by.RequestID, Action: telematics.FleetImport,
		Outcome: telematics.Executed,
		Details: map[string]any{
			"agencies": imported.Agencies, "tariffs": imported.Tariffs, "rental_rules": imported.Rules, "areas": imported.Areas,
			"stations": imported.Stations, "vehicles": imported.Vehicles, "units": imported.Units,
		},
	}
	if failure != nil {
		entry.Outcome = telematics.HasFailed // a part may be written
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return activity.Insert(ctx, f.db.Pool, entry)
}

func (f *Fleet) importFile(ctx context.Context, file FleetFile, complete completion, by string) (all Imported, err error) {
	db, err := f.db.WithoutTimeouts(ctx, importLockTimeout)
	if err != nil {
		return Imported{}, err
	}
	defer db.Close()
	agencies := func(tx *sqlx.Tx) error {
		part, err := complete(ctx, tx, FleetFile{
			Agencies: file.Agencies, Stations: file.Stations, Terms: file.Terms, Tariffs: file.Tariffs, Areas: file.Areas,
		})
		if err != nil {
			return err
		}
		if all.Agencies, err = importAgencies(ctx, tx, part); err == nil {
			all.Tariffs, err = importTariffs(ctx, tx, part, by)
		}
		if err == nil {
			all.Rules, err = importRules(ctx, tx, part)
		}
		if err == nil {
			all.Areas, err = importAreas(ctx, tx, part)
		}
		if err == nil {
			all.Stations, err = importStations(ctx, tx, part)
		}
		return err
	}
	for err := within(ctx, db, agencies); err != nil; err = within(ctx, db, agencies) {
		if err := awaitRetry(ctx, err); err != nil {
			return Imported{}, err
		}
	}
	touched := map[telematics.Unit]bool{} // a unit that moves counts once
	// A part that others lock is tried again, in halves, after all others.
	parts := slices.Collect(slices.Chunk(file.Vehicles, importBatch))
	for failed := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		var vehicles int
		var units []telematics.Unit
		err := within(ctx, db, func(tx *sqlx.Tx) error {
			part, err := complete(ctx, tx, FleetFile{Vehicles: part, Rates: file.Rates})
			if err != nil {
				return err
			}
			if vehicles, err = importVehicles(ctx, tx, part.Vehicles, part.Rates, by); err == nil {
				units, err = importUnits(ctx, tx, part.Vehicles)
			}
			return err
		})
		if err == nil {
			for _, unit := range units {
				touched[unit] = true
			}
			all.Vehicles, all.Units, failed = all.Vehicles+vehicles, len(touched), 0
			continue
		}
		parts = slices.AppendSeq(parts, slices.Chunk(part, (len(part)+1)/2))
		if failed++; failed < len(parts) && pg.IsContended(err) {
			continue
		}
		if err := awaitRetry(ctx, err); err != nil {
			return all, err
		}
	}
	return all, nil
}

// awaitRetry waits until what others have locked is tried again. It returns other errors, and
// that of the context.
func awaitRetry(ctx context.Context, err error) error {
	if !pg.IsContended(err) {
		return err
	}
	if !guard.Pause(ctx, importRetry) {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// lockImports waits until no other transaction writes what fleet files set.
const lockImports = `select pg_advisory_xact_lock(hashtext('import'))`

// within runs a part of an import in a transaction, while no other import does.
func within(ctx context.Context, db *sqlx.DB, run func(*sqlx.Tx) error) error {
	return pg.Within(ctx, db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockImports); err != nil {
			return err
		}
		return run(tx)
	})
}

// upsert runs a statement over rows and returns how many it changed.
func upsert(ctx context.Context, tx *sqlx.Tx, query string, rows any) (int, error) {
	n, err := pg.Affected(tx.ExecContext(ctx, query, pg.JSON(rows)))
	return int(n), err
}

type agencyFileRow struct {
	ID   telematics.AgencyID `json:"id"`
	Code string              `json:"code"`
	Name string              `json:"name"`

	Currency     rental.Currency `json:"currency"`
	Tax          rental.TaxRate  `json:"tax_ppm"`
	CancelCutoff string          `json:"cancel_cutoff"`
	Buffer       string          `json:"buffer"`
	UnlockGrace  string          `json:"unlock_grace"`
	PaymentWait  string          `json:"payment_wait"`
	FeeLimit     *rental.Minor   `json:"fee_limit"` // null: the default
	BestEffort   bool            `json:"best_effort_unlock"`
}

// agencyColumns are those that a fleet file sets, without the key and the code.
var agencyColumns = pg.Columns{
	"name", "currency", "tax_ppm", "cancel_cutoff", "buffer", "unlock_grace", "payment_wait", "fee_limit", "best_effort_unlock",
}

// importAgencies sets codes, which are a key, only for agencies that have another code: a change
// of a key locks the agency against new bookings, which lock vehicles, and those are imported
// next.
func importAgencies(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	rows := []agencyFileRow{}
	for _, a := range file.Agencies {
		terms := file.Terms[a.ID]
		rows = append(rows, agencyFileRow{
			ID: a.ID, Code: a.Code, Name: a.Name, Currency: cmp.Or(terms.Currency, rental.DefaultCurrency),
			Tax: terms.Tax, FeeLimit: pg.Nullable(terms.FeeLimit), BestEffort: a.BestEffortUnlock,
			CancelCutoff: minutes(terms.CancelCutoff), Buffer: minutes(terms.Buffer),
			UnlockGrace: minutes(terms.UnlockGrace), PaymentWait: minutes(terms.PaymentWait),
		})
	}
	added, err := upsert(ctx, tx, `
		insert into agencies (id, code, `+agencyColumns.String()+`)
		select id, code, `+agencyColumns.String()+` from json_populate_recordset(null::agencies, $1) f
		where not exists (select from agencies a where a.id = f.id and a.code = f.code)
		order by id
		on conflict (id) do update set (code, `+agencyColumns.String()+`) = (excluded.code, `+agencyColumns.Of("excluded")+`)`, rows)
	if refusal := pq.As(err); refusal != nil && refusal.Constraint == "agencies_code_unique" {
		return 0, &telematics.Error{Code: telematics.IDTaken, Message: "Another agency has the code of one of these agencies.", Cause: err}
	}
	if err != nil {
		return 0, err
	}
	changed, err := upsert(ctx, tx, `
		update agencies a set (`+agencyColumns.String()+`) = (`+agencyColumns.Of("f")+`)
		from json_populate_recordset(null::agencies, $1) f
		where a.id = f.id and (`+agencyColumns.Of("a")+`) is distinct from (`+agencyColumns.Of("f")+`)`, rows)
	return added + changed, err
}

type stationFileRow struct {
	ID        telematics.StationID `json:"id"`
	AgencyID  telematics.AgencyID  `json:"agency_id"`
	Name      string               `json:"name"`
	Address   string               `json:"address"`
	Latitude  float64              `json:"latitude"`
	Longitude float64              `json:"longitude"`
}

var stationColumns = pg.Columns{"agency_id", "name", "address", "latitude", "longitude"}

func importStations(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	rows := pg.Map(file.Stations, func(s telematics.Station) stationFileRow { return stationFileRow(s) })
	return upsert(ctx, tx, `
		insert into stations (id, `+stationColumns.String()+`)
		select id, `+stationColumns.String()+` from json_populate_recordset(null::stations, $1) f
		where not exists (select from stations s where s.id = f.id and (`+stationColumns.Of("s")+`) = (`+stationColumns.Of("f")+`))
		order by id
		on conflict (id) do update set (`+stationColumns.String()+`) = (`+stationColumns.Of("excluded")+`)`, rows)
}
