package vehicles

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Imported counts what an import added or changed.
type Imported struct {
	Agencies, Stations, Vehicles, Units int
}

// String returns the counts as a sentence for an operator.
func (i Imported) String() string {
	return fmt.Sprintf("%d agencies, %d stations, %d vehicles and %d units added or changed",
		i.Agencies, i.Stations, i.Vehicles, i.Units)
}

// Import writes the content of a fleet file, in one transaction. Existing rows get the values of
// the file; rows that the file does not name stay as they are. The file sets what a vehicle costs,
// and whether it is withdrawn (maintenance, inactive); the status of any other vehicle with
// bookings follows those. A unit that has another vehicle in the file moves there. Its contact is
// cleared then, and also where it has another protocol in the file.
func (f *Fleet) Import(ctx context.Context, file FleetFile) (Imported, error) {
	imported, err := f.importFile(ctx, file)
	return imported, unavailable.Wrap("import fleet", err)
}

func (f *Fleet) importFile(ctx context.Context, file FleetFile) (Imported, error) {
	db, err := f.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return Imported{}, err
	}
	defer db.Close()
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return Imported{}, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	var imported Imported
	for _, step := range []struct {
		count *int
		run   func(context.Context, *sqlx.Tx, FleetFile) (int, error)
	}{
		{&imported.Agencies, importAgencies},
		{&imported.Stations, importStations},
		{&imported.Vehicles, importVehicles},
		{&imported.Units, importUnits},
	} {
		if *step.count, err = step.run(ctx, tx, file); err != nil {
			return Imported{}, err
		}
	}
	return imported, tx.Commit()
}

// upsert runs a statement over rows and returns how many it changed.
func upsert(ctx context.Context, tx *sqlx.Tx, query string, rows any) (int, error) {
	result, err := tx.ExecContext(ctx, query, pg.JSONRecords(rows))
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

type agencyFileRow struct {
	ID   telematics.AgencyID `json:"id"`
	Code string              `json:"code"`
	Name string              `json:"name"`

	Currency      rental.Currency `json:"currency"`
	Tax           rental.TaxRate  `json:"tax_ppm"`
	CutoffMinutes int64           `json:"cutoff_minutes"`
	BufferMinutes int64           `json:"buffer_minutes"`
	GraceMinutes  int64           `json:"grace_minutes"`
	WaitMinutes   int64           `json:"wait_minutes"`
	FeeLimit      *rental.Minor   `json:"fee_limit"` // null: the default
	BestEffort    bool            `json:"best_effort_unlock"`
}

// importAgencies sets codes, which are a key, only for agencies that have another code: a change of
// a key locks the agency against new bookings, which lock vehicles, and those are imported next.
func importAgencies(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	rows := []agencyFileRow{}
	for _, a := range file.Agencies {
		terms := file.Terms[a.ID]
		rows = append(rows, agencyFileRow{
			ID: a.ID, Code: a.Code, Name: a.Name, Currency: cmp.Or(terms.Currency, rental.DefaultCurrency), Tax: terms.Tax,
			CutoffMinutes: int64(terms.CancelCutoff / time.Minute), BufferMinutes: int64(terms.Buffer / time.Minute),
			GraceMinutes: int64(terms.UnlockGrace / time.Minute), WaitMinutes: int64(terms.PaymentWait / time.Minute), FeeLimit: pg.Nullable(terms.FeeLimit),
			BestEffort: a.BestEffortUnlock,
		})
	}
	const fileRows = `
		select id, code, name, currency, tax_ppm, make_interval(mins => cutoff_minutes) as cancel_cutoff, make_interval(mins => buffer_minutes) as buffer,
			make_interval(mins => grace_minutes) as unlock_grace, make_interval(mins => wait_minutes) as payment_wait, fee_limit, best_effort_unlock
		from json_to_recordset($1) as f (
			id bigint, code text, name text, currency text, tax_ppm bigint, cutoff_minutes integer, buffer_minutes integer,
			grace_minutes integer, wait_minutes integer, fee_limit bigint, best_effort_unlock boolean)`
	added, err := upsert(ctx, tx, `
		insert into agencies (id, code, name, currency, tax_ppm, cancel_cutoff, buffer, unlock_grace, payment_wait, fee_limit, best_effort_unlock)
		select * from (`+fileRows+`) f
		where not exists (select from agencies a where a.id = f.id and a.code = f.code)
		order by id
		on conflict (id) do update set code = excluded.code, name = excluded.name, currency = excluded.currency, tax_ppm = excluded.tax_ppm,
			cancel_cutoff = excluded.cancel_cutoff, buffer = excluded.buffer, unlock_grace = excluded.unlock_grace, payment_wait = excluded.payment_wait,
			fee_limit = excluded.fee_limit, best_effort_unlock = excluded.best_effort_unlock`,
		rows)
	if err != nil {
		return 0, err
	}
	changed, err := upsert(ctx, tx, `
		update agencies a
		set name = f.name, currency = f.currency, tax_ppm = f.tax_ppm, cancel_cutoff = f.cancel_cutoff, buffer = f.buffer,
			unlock_grace = f.unlock_grace, payment_wait = f.payment_wait, fee_limit = f.fee_limit, best_effort_unlock = f.best_effort_unlock
		from (`+fileRows+`) f
		where a.id = f.id and (a.name, a.currency, a.tax_ppm, a.cancel_cutoff, a.buffer, a.unlock_grace, a.payment_wait, a.fee_limit, a.best_effort_unlock)
			is distinct from (f.name, f.currency, f.tax_ppm, f.cancel_cutoff, f.buffer, f.unlock_grace, f.payment_wait, f.fee_limit, f.best_effort_unlock)`,
		rows)
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

func importStations(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	rows := []stationFileRow{}
	for _, s := range file.Stations {
		rows = append(rows, stationFileRow(s))
	}
	return upsert(ctx, tx, `
		insert into stations as s (id, agency_id, name, address, latitude, longitude)
		select * from json_to_recordset($1) as f (
			id bigint, agency_id bigint, name text, address text, latitude double precision, longitude double precision)
		order by id
		on conflict (id) do update set agency_id = excluded.agency_id, name = excluded.name, address = excluded.address,
			latitude = excluded.latitude, longitude = excluded.longitude
		where (s.*) is distinct from (excluded.*)`,
		rows)
}

type vehicleFileRow struct {
	ID           telematics.VehicleID     `json:"id"`
	AgencyID     telematics.AgencyID      `json:"agency_id"`
	Status       telematics.VehicleStatus `json:"status"`
	Powertrain   telematics.Powertrain    `json:"powertrain"`
	PlateNumber  string                   `json:"plate_number"`
	Brand        string                   `json:"brand"`
	Model        string                   `json:"model"`
	Year         int                      `json:"year"`
	Color        string                   `json:"color"`
	Category     string                   `json:"category"`
	Image        string                   `json:"image"`
	Features     []string                 `json:"features"`
	Capabilities []telematics.Action      `json:"capabilities"`
	HourlyRate   *rental.Minor            `json:"hourly_rate"` // null: not for rent
	Deposit      rental.Minor             `json:"deposit"`
}

// importVehicles first locks the existing rows, so that no booking changes a vehicle's status
// between the read of its bookings and the commit.
func importVehicles(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	rows := []vehicleFileRow{}
	for _, v := range file.Vehicles {
		rate, rented := file.Rates[v.ID]
		row := vehicleFileRow{
			ID: v.ID, AgencyID: v.AgencyID, Status: v.Status, Powertrain: v.Powertrain, PlateNumber: v.Plate,
			Brand: v.Brand, Model: v.Model, Year: v.Year, Color: v.Color, Category: v.Category, Image: v.Image,
			Features: v.Features, Capabilities: v.Actions, Deposit: rate.Deposit,
		}
		if rented {
			row.HourlyRate = &rate.Hourly
		}
		rows = append(rows, row)
	}
	if _, err := tx.ExecContext(ctx, `
		select from vehicles where id in (select id from json_to_recordset($1) as f (id bigint)) order by id for no key update`,
		pg.JSONRecords(rows)); err != nil {
		return 0, err
	}
	return upsert(ctx, tx, `
		insert into vehicles as v (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category,
			image, features, capabilities, hourly_rate, deposit)
		select id, agency_id,
			case when status in ('maintenance', 'inactive') then status else coalesce((
				select case b.state when 'active' then 'in_use' else 'booked' end
				from bookings b
				where b.vehicle_id = f.id and (b.state = 'active' or b.state = 'upcoming' and b.end_at > now())
				order by b.state = 'active' desc
				limit 1), status) end,
			powertrain, plate_number, brand, model, year, color, category, image,
			coalesce(features, '{}'), coalesce(capabilities, '{}'), hourly_rate, deposit
		from json_to_recordset($1) as f (
			id bigint, agency_id bigint, status text, powertrain text, plate_number text, brand text, model text,
			year integer, color text, category text, image text, features text[], capabilities text[], hourly_rate bigint, deposit bigint)
		order by id
		on conflict (id) do update set agency_id = excluded.agency_id, status = excluded.status,
			powertrain = excluded.powertrain, plate_number = excluded.plate_number, brand = excluded.brand,
			model = excluded.model, year = excluded.year, color = excluded.color, category = excluded.category,
			image = excluded.image, features = excluded.features, capabilities = excluded.capabilities,
			hourly_rate = excluded.hourly_rate, deposit = excluded.deposit
		where (v.*) is distinct from (excluded.*)`,
		rows)
}

type unitFileRow struct {
	Serial    *telematics.Unit     `json:"serial"` // null: none is built in
	VehicleID telematics.VehicleID `json:"vehicle_id"`
	Protocol  telematics.Protocol  `json:"protocol"`
	// Never null.
	Installation telematics.Installation `json:"installation"`
}

// importUnits first removes units that move from their vehicles, so that two units can be swapped.
// The table lock keeps out observations, which lock units in the order of their vehicles.
func importUnits(ctx context.Context, tx *sqlx.Tx, file FleetFile) (int, error) {
	if _, err := tx.ExecContext(ctx, `lock table units in exclusive mode`); err != nil {
		return 0, err
	}
	rows := []unitFileRow{}
	for _, v := range file.Vehicles {
		row := unitFileRow{
			Serial: pg.Nullable(v.Unit), VehicleID: v.ID,
			Protocol: cmp.Or(v.Protocol, telematics.DefaultProtocol), Installation: v.Installation,
		}
		if row.Installation == nil {
			row.Installation = telematics.Installation{}
		}
		rows = append(rows, row)
	}
	// Both statements return what they touched: a unit that moves counts once.
	touched := map[telematics.Unit]bool{}
	for _, query := range []string{`
		update units u
		set vehicle_id = null, status = null, session = '', former_sessions = '{}', said_at = null, changed_at = null, last_seen = null,
			actions = null, keys = null, firmware = '', gap_ms = null
		from json_to_recordset($1) as f (serial text, vehicle_id bigint, protocol text)
		where u.vehicle_id = f.vehicle_id and u.serial is distinct from f.serial
			or u.serial = f.serial and (u.vehicle_id, u.protocol) <> (f.vehicle_id, f.protocol)
		returning u.serial`, `
		insert into units as u (serial, vehicle_id, protocol, installation)
		select serial, vehicle_id, protocol, installation
		from json_to_recordset($1) as f (serial text, vehicle_id bigint, protocol text, installation jsonb)
		where serial is not null
		order by vehicle_id
		on conflict (serial) do update set vehicle_id = excluded.vehicle_id, protocol = excluded.protocol, installation = excluded.installation
		where (u.vehicle_id, u.protocol, u.installation) is distinct from (excluded.vehicle_id, excluded.protocol, excluded.installation)
		returning u.serial`,
	} {
		var serials []telematics.Unit
		if err := tx.SelectContext(ctx, &serials, query, pg.JSONRecords(rows)); err != nil {
			return 0, err
		}
		for _, serial := range serials {
			touched[serial] = true
		}
	}
	return len(touched), nil
}
