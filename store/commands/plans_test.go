package commands

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/store/twins"
	"motorpool/telematics"
	"motorpool/telematics/delivery"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

func TestPrepared_StatementIsPreparedOncePerConnection(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	p.Prepared.Pool.SetMaxOpenConns(1)
	for range 3 {
		_, err := p.Twin(t.Context(), 1)
		require.NoError(t, err)
	}
	var rows []struct {
		Statement string `db:"statement"`
		Plans     int    `db:"plans"`
	}
	require.NoError(t, p.Prepared.Pool.SelectContext(t.Context(), &rows, `
		select statement, generic_plans + custom_plans as plans
		from pg_prepared_statements where statement like '%from vehicles v%'`))
	if len(rows) != 1 || rows[0].Plans != 3 {
		t.Errorf("prepared %+v, want one statement that ran 3 times", rows)
	}
}

// A plan with a scan of a whole table or index is acceptable only while the table is empty.
func TestPrepared_StatementsUseIndexes(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	p.Prepared.Pool.SetMaxOpenConns(1)
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	first, second := brokertest.NewCommand(vehicle, telematics.Lock), brokertest.NewCommand(vehicle, telematics.Lock)
	_, refused := p.claim(t.Context(), []*telematics.Command{&first, &second})
	_, claimed := p.Claim(t.Context(), second)
	keyed, alsoKeyed := brokertest.NewCommand(vehicle, telematics.OpenTopCase), brokertest.NewCommand(vehicle, telematics.OpenTopCase)
	keyed.Key, alsoKeyed.Key = brokertest.NewKey(), brokertest.NewKey()
	_, claimedKeyed := p.Claim(t.Context(), keyed)
	_, refusedKeyed := p.claim(t.Context(), []*telematics.Command{&keyed, &alsoKeyed})
	var settled error
	for _, state := range []telematics.State{telematics.Rejected, telematics.Succeeded} {
		for _, known := range []*telematics.Command{nil, &first} {
			of := func(c *telematics.Command) *delivery.Settlement {
				return &delivery.Settlement{Command: c.ID, State: state, At: time.Now(), Known: known}
			}
			_, one := p.settle(t.Context(), []*delivery.Settlement{of(&first)})
			_, two := p.settle(t.Context(), []*delivery.Settlement{of(&second), of(&keyed)})
			settled = errors.Join(settled, one, two)
		}
	}
	_, moved := p.settleMoved(
		t.Context(),
		[]*delivery.Settlement{{Command: first.ID, Unit: unit, State: telematics.Succeeded, At: time.Now()}},
	)
	settled = errors.Join(settled, moved)
	_, updated := p.Updates(t.Context(), []telematics.CommandID{first.ID}, []telematics.CommandID{second.ID})
	_, read := p.Twin(t.Context(), vehicle)
	_, recorded := p.Record(t.Context(), vehicle)
	report := []delivery.Observation{
		{
			Unit: unit, At: time.Now(),
			Report: &telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}},
		},
	}
	// This one looks up the unit's vehicle.
	_, owned := twins.New(twins.Config{DB: p.DB, Vehicles: p.Fleet, Redis: new(redis.DB)}).Observe(t.Context(), report)
	_, reported := twins.Store(t.Context(), p.DB, report)
	presence := telematics.Presence{Status: telematics.Online, Session: "s", At: time.Now()}
	_, spoke := twins.Store(t.Context(), p.DB, []delivery.Observation{{Unit: unit, At: time.Now(), Presence: &presence}})
	require.NoError(t, errors.Join(claimed, refused, p.StoreProgress(t.Context(), []delivery.Note{noteOf(first.ID)}), settled, claimedKeyed,
		refusedKeyed, updated, read, recorded, owned, reported, spoke))
	type preparedStatement struct {
		Name      string `db:"name"`
		Statement string `db:"statement"`
		Nulls     string `db:"nulls"`
	}
	var prepared []preparedStatement
	require.NoError(t, p.Prepared.Pool.Select(&prepared, `
		select name, statement, repeat('null,', cardinality(parameter_types) - 1) || 'null' as nulls
		from pg_prepared_statements where parameter_types <> '{}'`))
	if len(prepared) < 10 {
		t.Errorf("%d statements were prepared, want at least 10", len(prepared))
	}
	for _, text := range slices.AppendSeq(slices.Collect(maps.Values(settleStatements)), maps.Values(claimStatements)) {
		if !slices.ContainsFunc(prepared, func(s preparedStatement) bool { return s.Statement == text }) {
			t.Errorf("not prepared: %s", text)
		}
	}
	for _, s := range prepared {
		var plan []string
		require.NoError(t, p.Prepared.Pool.Select(&plan, `explain execute "`+s.Name+`" (`+s.Nulls+`)`))
		for i, line := range plan {
			scans := strings.Contains(line, "Index Scan") || strings.Contains(line, "Index Only Scan")
			keyed := i+1 < len(plan) && strings.Contains(plan[i+1], "Index Cond")
			if strings.Contains(line, "Seq Scan") || scans && !keyed {
				t.Errorf("%s\nscans a whole table or index: %s\n%s", s.Statement, line, strings.Join(plan, "\n"))
			}
		}
	}
}

// Prepared statements end with their connection, and an added column must not break running
// instances.
func TestPrepared_SurvivesLostConnectionsAndMigrations(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	read := func(when string) {
		t.Helper()
		if _, err := p.Twin(t.Context(), 1); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if err := p.Prepared.Within(t.Context(), func(ctx context.Context, tx *sqlx.Tx) error {
			var rows []struct {
				VehicleID int64  `db:"vehicle_id"`
				Fields    []byte `db:"fields"`
			}
			const read = `select vehicle_id, fields from snapshots where vehicle_id = any ($1)`
			return tx.SelectContext(ctx, &rows, read, pq.Array([]int64{1}))
		}); err != nil {
			t.Errorf("%s, in a transaction: %v", when, err)
		}
	}
	read("the first time")
	read("again")
	_, err := p.owner().Pool.ExecContext(context.Background(), `
		select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid()`)
	require.NoError(t, err)
	read("after the connections were cut")
	storetest.Exec(t, p.Pool, `alter table snapshots add column more text`)
	read("after a migration")
}

// When all connections are in use, a call must fail at its time limit.
func TestCalls_WaitForAConnectionNoLongerThanTheirTimeLimit(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	for range p.Prepared.Pool.Stats().MaxOpenConnections {
		require.NoError(t, p.Prepared.Acquire(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Updates(ctx, []telematics.CommandID{telematics.NoCommand}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read: %v, want its time limit exceeded", err)
	}
	if _, err := twins.Store(ctx, p.DB, []delivery.Observation{{}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a transaction: %v, want its time limit exceeded", err)
	}
	for range p.Prepared.Pool.Stats().MaxOpenConnections {
		p.Prepared.Release()
	}
	if _, err := p.Updates(t.Context(), []telematics.CommandID{telematics.NoCommand}, nil); err != nil {
		t.Errorf("after the connections are free: %v", err)
	}
}
