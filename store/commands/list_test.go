package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// listed is a record of commands, of which one in twenty did not succeed. Commands of the last 26
// hours are in the table commands, all others in partitions of three months. Agencies 1 and 2 have
// half of them each, agency 3 has a hundred. The actors are bot-0 to bot-9, and eva, who sent
// twenty.
type listed struct {
	*instance
	now              time.Time
	history, current int
	vehicles         int
}

func newListed(tb testing.TB, history, current, vehicles int) *listed {
	tb.Helper()
	l := &listed{
		instance: open(tb, storetest.NewDatabase(tb)), history: history, current: current, vehicles: vehicles,
		// In the middle of a month: a partition with few rows would be read as a whole.
		now: time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC),
	}
	storetest.AddFleet(tb, l.DB, min(vehicles, current))
	db, err := l.owner().WithoutTimeouts(tb.Context(), 0)
	require.NoError(tb, err)
	defer db.Close()
	for _, statement := range []string{
		`create function listed_id(at timestamptz, n bigint) returns uuid language sql as $$
			select (substr(command_id_at(at)::text, 1, 13) || '-7' || substr(md5(n::text), 1, 3) || '-8' || substr(md5(n::text), 4,
				3) || '-' || substr(md5(n::text), 7, 12))::uuid $$`,
		fmt.Sprintf(`select add_settled_commands_partition(date_trunc('month',
			(timestamptz '%s' at time zone 'UTC') - m * interval '1 month')) from generate_series(0, 3) as m`, l.now.Format(time.RFC3339)),
		`insert into settled_commands (id, vehicle_id, agency_id, unit, action, lane, seq, instance, actor_subject, actor_role, state,
			reason, detail, late, overruled, attempts, requested_at, completed_at, deadline) ` +
			l.rows(1, history, "26 hours", "90 days",
				`case when n % 20 <> 0 then 'succeeded' when n % 40 <> 0 then 'rejected' when n % 80 <> 0 then 'failed' when n % 400
					<> 0 then 'expired' else 'unknown' end`),
		`insert into commands (id, vehicle_id, agency_id, unit, action, lane, seq, instance, actor_subject, actor_role, state, reason,
			detail, late, overruled, attempts, requested_at, completed_at, deadline) ` +
			l.rows(history+1, current, "0 hours", "26 hours",
				`case when n % 20 <> 0 then 'succeeded' when n % 40 <> 0 then 'rejected' else 'unknown' end`),
		// One open command for each fifth vehicle.
		`update commands set state = 'sent', completed_at = null where id in (select id
			from (select distinct on (vehicle_id) id, vehicle_id from commands order by vehicle_id, seq desc) as latest
				where vehicle_id % 5 = 0)`,
		`vacuum analyze`,
	} {
		db.MustExec(statement)
	}
	return l
}

// rows selects n commands with numbers from a given one and ages between two limits, the youngest
// last.
func (l *listed) rows(from, n int, youngest, oldest, state string) string {
	at := fmt.Sprintf(
		`(timestamptz '%s' - interval '%s' - (interval '%s' - interval '%s') * ((%d - n)::float8 / %d))`,
		l.now.Format(time.RFC3339), youngest, oldest, youngest, from+n-1, n,
	)
	return fmt.Sprintf(
		`select listed_id(%[1]s, n), n %% %[2]d + 1, case when n %% (%[3]d / 100) = 0 then 3 else n %% 2 + 1 end, 'u', 'lock',
			'access', n, 'i',
		case when n %% (%[3]d / 20) = 0 then 'eva' else 'bot-' || n %% 10 end, 'admin', %[6]s, '', '', false, false, 1, %[1]s,
			%[1]s + interval '1 second', %[1]s + interval '10 seconds'
		from generate_series(%[4]d, %[5]d) as n`, at, l.vehicles, l.history+l.current, from, from+n-1, state)
}

// queries returns the combinations of filters, also with late pages.
func (l *listed) queries() map[string]telematics.CommandQuery {
	month := telematics.CommandQuery{From: l.now.AddDate(0, 0, -60), To: l.now.AddDate(0, 0, -30)}
	queries := map[string]telematics.CommandQuery{}
	for states, of := range map[string][]telematics.State{
		"": nil, "succeeded": {telematics.Succeeded}, "unknown": {telematics.Unknown}, "open": {telematics.Accepted, telematics.Sent,
			telematics.Received},
		"not executed": {telematics.Rejected, telematics.Expired},
	} {
		for who, q := range map[string]telematics.CommandQuery{
			"all": {}, "an agency": {Agency: 1}, "a small agency": {Agency: 3}, "no agency": {Agency: 4},
			"a vehicle": {Vehicle: 7}, "a vehicle of an agency": {Vehicle: 7, Agency: 1},
			"an actor": {Actor: "bot-1"}, "a rare actor": {Actor: "eva"}, "no actor": {Actor: "tom"},
			"an actor of an agency": {Actor: "bot-1", Agency: 2}, "an actor of a vehicle": {Actor: "bot-8", Vehicle: 8},
		} {
			q.States = of
			queries[who+" "+states] = q
			q.From, q.To = month.From, month.To
			queries[who+" "+states+" a month"] = q
			q.From, q.To, q.Before = time.Time{}, time.Time{}, leastID(l.now.AddDate(0, 0, -45))
			queries[who+" "+states+" late page"] = q
		}
	}
	for name, q := range queries {
		q.Limit = 51
		queries[name] = q
	}
	return queries
}

// plan is a node of an executed query plan.
type plan struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan  `json:"Plans"`
}

// read returns how many table rows a plan has read.
func (p plan) read() float64 {
	rows := 0.0
	if p.Relation != "" {
		rows = (p.Rows + p.Removed) * p.Loops
	}
	for _, inner := range p.Plans {
		rows += inner.read()
	}
	return rows
}

// With any filter, the number of rows read is that of some pages or of one vehicle, not that of all
// commands.
func TestList_ReadsFewRowsWithAnyFilter(t *testing.T) {
	l := newListed(t, 22_500, 2_500, 250)
	ofVehicle := float64((l.history + l.current) / l.vehicles)
	for name, q := range l.queries() {
		statement, args := listStatement(q)
		if statement == "" {
			t.Fatalf("%s: no statement was built", name)
		}
		var text string
		if err := l.Lists.GetContext(t.Context(), &text, `explain (analyze, format json) `+statement, args...); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, statement)
		}
		var plans []struct{ Plan plan }
		require.NoError(t, json.Unmarshal([]byte(text), &plans))
		// One state after the other, in two tables. Open commands have one index for all filters.
		most := 15.0 * float64(q.Limit)
		if q.Vehicle != 0 {
			most += ofVehicle
		}
		if q.Actor != "" {
			most += float64(l.current) // commands of the hot table are found by time only
		}
		if read := plans[0].Plan.read(); read > most {
			t.Errorf("%s: %v rows read, want at most %v", name, read, most)
		}
	}
}

func TestList_ReturnsMatchesNewestFirst(t *testing.T) {
	l := newListed(t, 4000, 1000, 50)
	all, err := l.List(t.Context(), telematics.CommandQuery{})
	if err != nil || len(all) != l.history+l.current {
		t.Fatalf("%d commands, error %v; want all", len(all), err)
	}
	for name, q := range l.queries() {
		var want []telematics.CommandID
		for _, c := range all {
			matches := (q.Agency == 0 || c.Agency == q.Agency) && (q.Vehicle == 0 || c.Vehicle == q.Vehicle) &&
				(q.Actor == "" || c.Actor.Subject == q.Actor) &&
				(q.States == nil || slices.Contains(q.States, c.State)) &&
				(q.From.IsZero() || !c.Requested.Before(q.From)) &&
				(q.To.IsZero() || c.Requested.Before(q.To)) &&
				(q.Before == uuid.Nil || bytes.Compare(c.ID[:], q.Before[:]) < 0)
			if matches && len(want) < q.Limit {
				want = append(want, c.ID)
			}
		}
		got, err := l.List(t.Context(), q)
		if err != nil || !slices.EqualFunc(got, want, func(c telematics.Command, id telematics.CommandID) bool { return c.ID == id }) {
			t.Errorf("%s: %d commands, want %d; %v", name, len(got), len(want), err)
		}
	}
	if got, err := l.List(t.Context(), telematics.CommandQuery{States: []telematics.State{}}); len(got) > 0 || err != nil {
		t.Errorf("an empty list of states: %d commands, %v; want none", len(got), err)
	}
	if got, err := l.List(t.Context(), telematics.CommandQuery{Actor: "a\x00"}); len(got) > 0 || err != nil {
		t.Errorf("an invalid actor: %d commands, %v; want none", len(got), err)
	}
}

// A partition that is older than the indexes gets them by the next Migrate, a later one when it is
// added.
func TestMigrate_BuildsTheIndexesOfPartitions(t *testing.T) {
	p := openAsOwner(t, storetest.NewEmptyDatabase(t))
	require.NoError(t, p.MigrateTo(t.Context(), 54))
	for _, statement := range []string{
		`select add_settled_commands_partition('2026-01-01')`,
		// An index whose creation was interrupted.
		`create index settled_commands_2026_01_agency on settled_commands_2026_01 (agency_id)`,
	} {
		storetest.Exec(t, p.Pool, statement)
	}
	for range 2 {
		_, err := p.Migrate(t.Context())
		require.NoError(t, err)
	}
	storetest.Exec(t, p.Pool, `select add_settled_commands_partition('2026-02-01')`)
	var indexes []string
	require.NoError(t, p.Pool.SelectContext(t.Context(), &indexes, `
		select c.relname || ' ' || i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
		where c.relname ~ '^settled_commands.*(agency|actor|trouble|_state_id).*' order by 1`))
	valid := 0
	for _, index := range indexes {
		if len(index) > 5 && index[len(index)-5:] == " true" {
			valid++
		}
	}
	if len(indexes) != 12 || valid != 12 { // three each for the table and three partitions
		t.Errorf("indexes %q, want 12 valid ones", indexes)
	}
}
