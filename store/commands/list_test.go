package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/store/storetest"
	"motorpool/telematics"
)

// listed is a history of commands: most succeeded, some went wrong. Those of the newest 26 hours
// are in the table commands, and all others in partitions of three months. Agencies 1 and 2 have a
// half each, and agency 3 a hundred; the actors are bot-0 to bot-9, and eva, who gave twenty.
type listed struct {
	*instance
	now              time.Time
	history, current int
	vehicles         int
}

func newListed(tb testing.TB, history, current, vehicles int) *listed {
	tb.Helper()
	l := &listed{instance: open(tb, storetest.NewDatabase(tb)), now: time.Now().UTC(), history: history, current: current, vehicles: vehicles}
	storetest.AddFleet(tb, l.DB, min(vehicles, current))
	db, err := l.WithoutTimeouts(tb.Context(), 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`create function listed_id(at timestamptz, n bigint) returns uuid language sql as $$
			select (substr(command_id_at(at)::text, 1, 13) || '-7' || substr(md5(n::text), 1, 3) || '-8' || substr(md5(n::text), 4, 3) || '-' || substr(md5(n::text), 7, 12))::uuid $$`,
		fmt.Sprintf(`select add_settled_commands_partition(date_trunc('month', (timestamptz '%s' at time zone 'UTC') - m * interval '1 month')) from generate_series(0, 3) as m`, l.now.Format(time.RFC3339)),
		`insert into settled_commands (id, vehicle_id, agency_id, unit, action, lane, seq, instance, actor_subject, actor_role, state, reason, detail, late, overruled, attempts, requested_at, completed_at, deadline) ` +
			l.rows(1, history, "26 hours", "90 days", `case when n % 20 <> 0 then 'succeeded' when n % 40 <> 0 then 'rejected' when n % 80 <> 0 then 'failed' when n % 400 <> 0 then 'expired' else 'unknown' end`),
		`insert into commands (id, vehicle_id, agency_id, unit, action, lane, seq, instance, actor_subject, actor_role, state, reason, detail, late, overruled, attempts, requested_at, completed_at, deadline) ` +
			l.rows(history+1, current, "0 hours", "26 hours", `case when n % 20 <> 0 then 'succeeded' when n % 40 <> 0 then 'rejected' else 'unknown' end`),
		// An open one, of every fifth vehicle.
		`update commands set state = 'sent', completed_at = null where id in (select id from (select distinct on (vehicle_id) id, vehicle_id from commands order by vehicle_id, seq desc) as latest where vehicle_id % 5 = 0)`,
		`vacuum analyze`,
	} {
		if _, err := db.ExecContext(tb.Context(), statement); err != nil {
			tb.Fatal(err)
		}
	}
	return l
}

// rows selects n commands from a number on, between two ages, the youngest last.
func (l *listed) rows(from, n int, youngest, oldest, state string) string {
	at := fmt.Sprintf(`(timestamptz '%s' - interval '%s' - (interval '%s' - interval '%s') * ((%d - n)::float8 / %d))`, l.now.Format(time.RFC3339), youngest, oldest, youngest, from+n-1, n)
	return fmt.Sprintf(`select listed_id(%[1]s, n), n %% %[2]d + 1, case when n %% (%[3]d / 100) = 0 then 3 else n %% 2 + 1 end, 'u', 'lock', 'access', n, 'i',
		case when n %% (%[3]d / 20) = 0 then 'eva' else 'bot-' || n %% 10 end, 'admin', %[6]s, '', '', false, false, 1, %[1]s, %[1]s + interval '1 second', %[1]s + interval '10 seconds'
		from generate_series(%[4]d, %[5]d) as n`, at, l.vehicles, l.history+l.current, from, from+n-1, state)
}

// queries are the combinations of filters, and pages far behind.
func (l *listed) queries() map[string]telematics.CommandQuery {
	month := telematics.CommandQuery{From: l.now.AddDate(0, 0, -60), To: l.now.AddDate(0, 0, -30)}
	queries := map[string]telematics.CommandQuery{}
	for states, of := range map[string][]telematics.State{
		"": nil, "succeeded": {telematics.Succeeded}, "unknown": {telematics.Unknown}, "open": {telematics.Accepted, telematics.Sent, telematics.Received},
		"not executed": {telematics.Rejected, telematics.Expired},
	} {
		for who, q := range map[string]telematics.CommandQuery{
			"all": {}, "an agency": {Agency: 1}, "a small agency": {Agency: 3}, "no agency": {Agency: 4}, "a vehicle": {Vehicle: 7}, "a vehicle of an agency": {Vehicle: 7, Agency: 1},
			"an actor": {Actor: "bot-1"}, "a rare actor": {Actor: "eva"}, "no actor": {Actor: "tom"}, "an actor of an agency": {Actor: "bot-1", Agency: 2}, "an actor of a vehicle": {Actor: "bot-8", Vehicle: 8},
		} {
			q.States = of
			queries[who+" "+states] = q
			q.From, q.To = month.From, month.To
			queries[who+" "+states+" a month"] = q
			q.From, q.To, q.Before = time.Time{}, time.Time{}, leastID(l.now.AddDate(0, 0, -45))
			queries[who+" "+states+" far behind"] = q
		}
	}
	for name, q := range queries {
		q.Limit = 51
		queries[name] = q
	}
	return queries
}

// plan is a node of a plan that has run.
type plan struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []plan  `json:"Plans"`
}

// read returns how many rows of tables a plan has read.
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

// Whatever the filter, the rows that are read are those of some pages, or of the vehicle: not those
// of the history.
func TestList_ReadsNoMoreThanItReturnsOfAnyFilter(t *testing.T) {
	l := newListed(t, 45_000, 5_000, 500)
	ofVehicle := float64((l.history + l.current) / l.vehicles)
	for name, q := range l.queries() {
		statement, args := listStatement(q)
		if statement == "" {
			t.Fatalf("%s: no statement", name)
		}
		var text string
		if err := l.Lists.GetContext(t.Context(), &text, `explain (analyze, format json) `+statement, args...); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, statement)
		}
		var plans []struct{ Plan plan }
		if err := json.Unmarshal([]byte(text), &plans); err != nil {
			t.Fatal(err)
		}
		// Of a state after the other, in two tables; open ones have one index for all filters.
		most := 15.0 * float64(q.Limit)
		if q.Vehicle != 0 {
			most += ofVehicle
		}
		if q.Actor != "" {
			most += float64(l.current) // by the time alone
		}
		if read := plans[0].Plan.read(); read > most {
			t.Errorf("%s: %v rows read, at most %v wanted", name, read, most)
		}
	}
}

func TestList_ReturnsWhatMatchesNewestFirst(t *testing.T) {
	l := newListed(t, 4000, 1000, 50)
	all, err := l.List(t.Context(), telematics.CommandQuery{})
	if err != nil || len(all) != l.history+l.current {
		t.Fatalf("%d commands, %v", len(all), err)
	}
	for name, q := range l.queries() {
		var want []telematics.CommandID
		for _, c := range all {
			matches := (q.Agency == 0 || c.Agency == q.Agency) && (q.Vehicle == 0 || c.Vehicle == q.Vehicle) && (q.Actor == "" || c.Actor.Subject == q.Actor) &&
				(q.States == nil || slices.Contains(q.States, c.State)) && (q.From.IsZero() || !c.Requested.Before(q.From)) && (q.To.IsZero() || c.Requested.Before(q.To)) &&
				(q.Before == uuid.Nil || c.ID.String() < q.Before.String())
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
		t.Errorf("of no state: %d, %v", len(got), err)
	}
	if got, err := l.List(t.Context(), telematics.CommandQuery{Actor: "a\x00"}); len(got) > 0 || err != nil {
		t.Errorf("of an actor that cannot be: %d, %v", len(got), err)
	}
}

// A partition that was there before its table had the indexes gets them by the next Migrate, and a
// later one has them.
func TestMigrate_BuildsTheIndexesOfPartitions(t *testing.T) {
	p := open(t, storetest.NewEmptyDatabase(t))
	if err := p.MigrateTo(t.Context(), 54); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`select add_settled_commands_partition('2026-01-01')`,
		// As one whose building was broken off.
		`create index settled_commands_2026_01_agency on settled_commands_2026_01 (agency_id)`,
	} {
		if _, err := p.Pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := p.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Pool.ExecContext(t.Context(), `select add_settled_commands_partition('2026-02-01')`); err != nil {
		t.Fatal(err)
	}
	var indexes []string
	if err := p.Pool.SelectContext(t.Context(), &indexes, `
		select c.relname || ' ' || i.indisvalid from pg_index i join pg_class c on c.oid = i.indexrelid
		where c.relname ~ '^settled_commands.*(agency|actor|trouble|_state_id).*' order by 1`); err != nil {
		t.Fatal(err)
	}
	valid := 0
	for _, index := range indexes {
		if len(index) > 5 && index[len(index)-5:] == " true" {
			valid++
		}
	}
	if len(indexes) != 12 || valid != 12 { // of the table, and of three partitions
		t.Errorf("indexes %q", indexes)
	}
}

// BenchmarkList is what a page of each combination of filters takes. MOTORPOOL_LISTED is how many
// commands there are.
func BenchmarkList(b *testing.B) {
	history, err := strconv.Atoi(os.Getenv("MOTORPOOL_LISTED"))
	if err != nil {
		history = 200_000
	}
	l := newListed(b, history, history/50, 10_000)
	for name, q := range l.queries() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := l.List(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
