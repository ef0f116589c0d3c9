package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

const vehiclesPerStatement = 50_000

// addVehicles puts vehicles on record, as the first one is, each with a unit and a snapshot. They
// were never connected, and none is due to be checked.
func (db database) addVehicles(ctx context.Context, first, last int) error {
	at := time.Now().Add(-24 * time.Hour)
	report, dropped, err := v1.DecodeReport(load.Report(1, at.UTC().Format(time.RFC3339)), time.Now())
	if err != nil || len(dropped) > 0 {
		return fmt.Errorf("decode the report of vehicles: %v, %w", dropped, err)
	}
	fields, err := vehicles.EncodeSnapshot(telematics.Merge(nil, report))
	if err != nil {
		return err
	}
	return db.addRows(ctx, first, last, vehiclesPerStatement,
		statement{`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features, capabilities)
			select n, agency_id, status, powertrain, 'T-ST ' || n, (array['Volkswagen', 'Renault', 'Opel', 'Fiat'])[1 + n % 4], 'Model ' || n % 5, 2024, 'blue', 'compact', image, features, capabilities
			from vehicles, generate_series($1::bigint, $2::bigint) n where id = 1`, nil},
		statement{`insert into units (serial, vehicle_id, check_at) select $3 || lpad(n::text, 9, '0'), n, null from generate_series($1::bigint, $2::bigint) n`, []any{load.SerialPrefix}},
		statement{`insert into snapshots (vehicle_id, fields) select n, $3::jsonb from generate_series($1::bigint, $2::bigint) n`, []any{string(fields)}})
}

// recordSize returns the size of the vehicles' tables with their indexes, in bytes.
func (db database) recordSize(ctx context.Context) (bytes float64, err error) {
	err = db.GetContext(ctx, &bytes, `select pg_total_relation_size('vehicles') + pg_total_relation_size('units') + pg_total_relation_size('snapshots')`)
	return bytes, err
}

// announcedOnline counts the units whose vehicles are announced as online.
func (r reader) announcedOnline(ctx context.Context) (n int, err error) {
	err = r.GetContext(ctx, &n, `select count(*) from units where announced = 'online'`)
	return n, err
}

// heardSince counts the units that Postgres has heard of since an instant.
func (r reader) heardSince(ctx context.Context, at time.Time) (n int, err error) {
	err = r.GetContext(ctx, &n, `select count(*) from units where last_seen >= $1`, at)
	return n, err
}

// silence makes all units silent for some time.
func (db database) silence(ctx context.Context, d time.Duration) error {
	_, err := db.ExecContext(ctx, `update units set last_seen = last_seen - make_interval(secs => $1), changed_at = changed_at - make_interval(secs => $1),
			check_at = check_at - make_interval(secs => $1)
		where status is not null`, d.Seconds())
	return err
}

// reader is a connection of the measurement, whose use of Postgres is known: it is not the
// service's.
type reader struct {
	database
	pid int
}

const readerName = "reader"

func openReader(ctx context.Context, url string) (r reader, err error) {
	if r.database, err = openDatabase(url); err != nil {
		return r, err
	}
	r.SetMaxOpenConns(1)
	if err := r.GetContext(ctx, &r.pid, `select pg_backend_pid()`); err != nil {
		return r, errors.Join(err, r.Close())
	}
	return r, nil
}

// start starts to measure what processes use. Postgres's use is without that of the reader.
func (r reader) start(m meters) (used func() (map[string]Usage, error), err error) {
	m[readerName] = r.pid
	end, err := m.start()
	return func() (map[string]Usage, error) {
		all, err := end()
		if err != nil {
			return nil, err
		}
		p := all["postgres"]
		p.CPU -= all[readerName].CPU
		all["postgres"] = p
		delete(all, readerName)
		return all, nil
	}, err
}

// walAt is how much Postgres has written to its log.
type walAt struct {
	Bytes     int64 `db:"bytes"`
	FullPages int64 `db:"full_pages"`
}

func (r reader) wal(ctx context.Context) (at walAt, err error) {
	err = r.GetContext(ctx, &at, `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes, (select wal_fpi from pg_stat_wal) as full_pages`)
	return at, err
}
