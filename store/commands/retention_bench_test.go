package commands

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// BenchmarkRetention prunes a year of commands, by month.
const (
	monthsOfYear     = 12
	commandsPerMonth = 100_000
)

// BenchmarkRetention reports what commands cost on disk and in WAL: in the table commands, for the
// move, and after it. With a year on record, it also reports how long reads take, how long it takes
// to prune nine months, and how much space that frees. docs/scale.md has the figures.
//
//	go test ./store/commands -run '^$' -bench Retention -benchtime 20000x
func BenchmarkRetention(b *testing.B) {
	b.Run("batch=1", func(b *testing.B) { benchmarkRetention(b, 1) })
	b.Run("batch=32", func(b *testing.B) { benchmarkRetention(b, 32) })
}

func benchmarkRetention(b *testing.B, batchSize int) {
	if b.N == 1 { // the testing package's trial run
		return
	}
	p := open(b, storetest.StartPostgres(b, true).Database(storetest.Template))
	const fleet = 4096
	units := storetest.AddFleet(b, p.DB, fleet)
	number := func(query string, args ...any) (n float64) {
		b.Helper()
		require.NoError(b, p.Pool.Get(&n, query, args...))
		return n
	}
	do := func(statement string) {
		b.Helper()
		db, err := p.WithoutTimeouts(b.Context(), 0)
		if err == nil {
			_, err = db.Exec(statement)
		}
		require.NoError(b, err)
		_ = db.Close()
	}
	wal := func() float64 { return number(`select pg_current_wal_insert_lsn() - '0/0'`) }
	perCommand := func(what string, bytes float64) { b.ReportMetric(bytes/float64(b.N), what+"-B/command") }

	do(`checkpoint`)
	began := wal()
	at := time.Now().Add(-2 * movedAfter)
	for first := 0; first < b.N; first += fleet {
		commands := make([]telematics.Command, min(fleet, b.N-first))
		for i := range commands {
			commands[i] = madeAt(telematics.VehicleID(i+1), at.Add(time.Duration(first+i)*time.Millisecond))
		}
		for batch := range slices.Chunk(commands, batchSize) {
			if _, err := p.claim(b.Context(), pointers(batch)); err != nil {
				b.Fatal(err)
			}
			settlements := make([]delivery.Settlement, len(batch))
			for i, c := range batch {
				settlements[i] = success(c)
				settlements[i].Unit = units[c.Vehicle-1]
			}
			if _, err := p.settle(b.Context(), pointers(settlements)); err != nil {
				b.Fatal(err)
			}
		}
	}
	perCommand("claim+settle-WAL", wal()-began)
	do(`vacuum analyze`) //nolint:misspell // as Postgres spells it
	perCommand("commands", number(`select pg_total_relation_size('commands')`))
	perCommand("activity", number(`select pg_total_relation_size('activity')`))

	do(`checkpoint`)
	began = wal()
	moving := time.Now()
	for more := true; more; {
		var err error
		if more, err = p.MoveSettled(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(moving).Microseconds())/float64(b.N), "move-µs/command")
	perCommand("move-WAL", wal()-began)
	perCommand(
		"settled",
		number(`select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'settled_commands'::regclass`),
	)
	assert.Equal(b, number(`select count(*) from commands`), 0, "commands not moved")
	began = wal()
	do(`vacuum commands`)
	perCommand("vacuum-WAL", wal()-began)

	if batchSize > 1 {
		pruneYear(b, p, do, number)
	}
}

// pruneYear adds a year of commands before this month, and prunes all but the last three months.
func pruneYear(b *testing.B, p *instance, do func(string), number func(string, ...any) float64) {
	for month := 1; month <= monthsOfYear; month++ {
		do(fmt.Sprintf(`select add_settled_commands_partition(date_trunc('month', now() at time zone 'UTC') - interval '%d month')`, month))
		do(fmt.Sprintf(`
			with month as (
				select date_trunc('month', now() at time zone 'UTC') - interval '%d month' as first
			)
			insert into settled_commands (
				id, vehicle_id, agency_id, unit, action, lane, seq, instance, actor_subject, actor_role, request_id,
				state, reason, detail, reported, late, overruled, attempts, requested_at, sent_at, completed_at, deadline)
			select overlay(command_id_at(at)::text placing '7'
				from 15)::uuid, 1 + n %% 4096, 1, 'unit-' || 1 + n %% 4096, 'lock', 'access', n, gen_random_uuid(), 'admin-7',
					'admin', gen_random_uuid(),
				'succeeded', '', '', '{"ts":"2026-01-02T10:00:01Z","telemetry":{"is_locked":true}}', false, false, 1, at, at,
					at + interval '1 second', at + interval '10 seconds'
			from (select n, first at time zone 'UTC' + n * interval '20 seconds' as at from month,
				generate_series(1, %d) as n) as made`, month, commandsPerMonth))
	}
	do(`vacuum analyze`) //nolint:misspell // as Postgres spells it
	began := time.Now()
	const reads = 100
	for vehicle := range reads {
		page, err := p.VehicleCommands(b.Context(), telematics.VehicleID(vehicle+1), 1, telematics.Page{Limit: 50})
		if err != nil || len(page) != 50 {
			b.Fatalf("%d commands, %v", len(page), err)
		}
	}
	b.ReportMetric(time.Since(began).Seconds()*1000/reads, "list-ms")
	var ids []telematics.CommandID
	require.NoError(b, p.Pool.Select(&ids, `select id from settled_commands where vehicle_id = 7 limit $1`, reads))
	began = time.Now()
	for _, id := range ids {
		if _, err := p.Command(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(time.Since(began).Seconds()*1000/float64(len(ids)), "read-ms")
	const size = `select pg_database_size(current_database())`
	before := number(size)
	began = time.Now()
	pruned, err := Prune(b.Context(), p.owner(), MinMonths, false)
	took := time.Since(began)
	if err != nil || len(pruned.Months) != monthsOfYear-MinMonths {
		b.Errorf("Prune = %+v, %v", pruned, err)
	}
	b.ReportMetric(float64(took.Milliseconds()), "prune-ms")
	b.ReportMetric((before-number(size))/1e6, "pruned-MB")
}

// success is the settlement by a unit's answer with a small report.
func success(c telematics.Command) delivery.Settlement {
	at := c.Requested.Add(time.Second)
	return delivery.Settlement{
		Command: c.ID, Unit: c.Unit, State: telematics.Succeeded, At: at, Progress: delivery.Progress{SentAt: at, Attempts: 1},
		Reported: &telematics.Report{At: at, Values: map[telematics.Field]any{telematics.IsLocked: true}},
	}
}
