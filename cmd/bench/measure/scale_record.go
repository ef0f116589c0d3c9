package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

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
	writers, ctx := errgroup.WithContext(ctx)
	writers.SetLimit(runtime.NumCPU())
	for from := first; from <= last; from += vehiclesPerStatement {
		writers.Go(func() error {
			return db.addVehicleRows(ctx, from, min(from+vehiclesPerStatement-1, last), fields)
		})
	}
	// Otherwise Postgres would do this during the measurement.
	return errors.Join(writers.Wait(), db.exec(context.WithoutCancel(ctx), `vacuum (analyze)`, `checkpoint`)) //nolint:misspell // as Postgres spells it
}

func (db database) addVehicleRows(ctx context.Context, first, last int, fields []byte) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	// Foreign keys are not checked row by row.
	_, err = tx.ExecContext(ctx, `set local session_replication_role = replica`)
	for _, statement := range []struct {
		sql  string
		args []any
	}{
		{`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features, capabilities)
			select n, agency_id, status, powertrain, 'T-ST ' || n, (array['Volkswagen', 'Renault', 'Opel', 'Fiat'])[1 + n % 4], 'Model ' || n % 5, 2024, 'blue', 'compact', image, features, capabilities
			from vehicles, generate_series($1::bigint, $2::bigint) n where id = 1`, []any{first, last}},
		{`insert into units (serial, vehicle_id, check_at) select $3 || lpad(n::text, 9, '0'), n, null from generate_series($1::bigint, $2::bigint) n`, []any{first, last, load.SerialPrefix}},
		{`insert into snapshots (vehicle_id, fields) select n, $3::jsonb from generate_series($1::bigint, $2::bigint) n`, []any{first, last, string(fields)}},
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement.sql, statement.args...)
		}
	}
	if err != nil {
		return fmt.Errorf("add vehicles: %w", errors.Join(err, tx.Rollback()))
	}
	return tx.Commit()
}

// recordSize is bytes of the vehicles' tables, with their indexes.
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

// walPosition is how many bytes Postgres has written to its log.
func (r reader) walPosition(ctx context.Context) (bytes int64, err error) {
	err = r.GetContext(ctx, &bytes, `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn`)
	return bytes, err
}
