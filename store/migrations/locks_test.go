package migrations_test

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/store/migrations"
	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// lockFreeSince is the last migration to which these rules do not apply.
const lockFreeSince = 34

// rules are what a migration must not do to an existing table: it would read or write the whole
// table, while statements of the service wait.
var rules = []struct{ statement, unless, instead string }{
	{
		`^create (unique )?index`, `^create (unique )?index (concurrently|(if not exists )?\S+ on only) `,
		"create index concurrently, in a migration with NO TRANSACTION; of a partitioned table, create index … on only",
	},
	{`^reindex`, `concurrently`, "reindex … concurrently, in a migration with NO TRANSACTION"},
	{`^alter table .* alter (column )?\S+ (set data )?type`, ``, "a new column, written by both versions, and filled in batches"},
	{`^alter table .* set not null`, ``, "a check constraint (… is not null) not valid, which a later migration validates"},
	{`^alter table .* add (constraint \S+ )?(check|foreign key)`, `not valid`, "not valid, and a later migration that validates it"},
	{
		`^alter table .* add (column )?(if not exists )?\S+ [^,]*\b(references|check)\b`,
		`^alter table .* add (constraint|check|foreign)`, "the column, then the constraint not valid",
	},
	{
		`^alter table .* add (constraint \S+ )?(unique|primary key|exclude)`, `using index`,
		"create unique index concurrently, then add constraint … using index",
	},
	{
		`^alter table .* add (column )?[^,]*(default [^,]*\(|generated|serial|identity)`,
		`^alter table .* add (constraint|check|foreign)|default now\(\)`,
		"a column without a default that is computed, filled in batches",
	},
	{`^alter table .* set (logged|unlogged|tablespace|access method|without cluster)`, ``, "a new table"},
	{`^reset lock_timeout`, ``, "set lock_timeout = '250ms': what follows would wait without bound"},
	{
		`^(update|delete from|merge into|truncate|lock|cluster|vacuum full|refresh materialized view)\b`, ``,
		"a loop of the service, in batches",
	},
}

// named matches the table of a statement to which a rule applies.
var named = regexp.MustCompile(
	`^(?:create (?:unique )?index .*? on (?:only )?|` +
		`alter table (?:if exists )?(?:only )?|update (?:only )?|delete from (?:only )?|` +
		`merge into |truncate (?:table )?|lock (?:table )?|cluster |vacuum full |create table (?:if not exists )?)([a-z_0-9."]+)`,
)

// violations returns the rules that a migration breaks. It ignores bodies of functions: they do not
// run.
func violations(text string) (found []string) {
	text = regexp.MustCompile(`(?m)--.*$`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?s)\$\$.*?\$\$`).ReplaceAllString(text, "''")
	text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
	statements := strings.Split(text, ";")
	added := map[string]bool{}
	for i, s := range statements {
		statements[i] = strings.TrimSpace(s)
		if t := named.FindStringSubmatch(statements[i]); t != nil && strings.HasPrefix(statements[i], "create table") {
			added[t[1]] = true
		}
	}
	for _, s := range statements {
		if t := named.FindStringSubmatch(s); t != nil && added[t[1]] {
			continue
		}
		for _, r := range rules {
			if regexp.MustCompile(r.statement).MatchString(s) && (r.unless == "" || !regexp.MustCompile(r.unless).MatchString(s)) {
				found = append(found, fmt.Sprintf("%s\nwant %s", s, r.instead))
			}
		}
	}
	if strings.Contains(text, "not valid") && strings.Contains(text, "validate constraint") {
		found = append(
			found,
			"a constraint is added and validated in one transaction\nwant a later migration that validates it: "+
				"the lock of the first statement is held until the end",
		)
	}
	return found
}

func versionOf(t *testing.T, file string) int64 {
	t.Helper()
	number, _, _ := strings.Cut(file, "_")
	v, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return v
}

func newVersions(t *testing.T) map[int64]string {
	t.Helper()
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	versions := map[int64]string{}
	for _, file := range files {
		if v := versionOf(t, file); v > lockFreeSince {
			versions[v] = file
		}
	}
	return versions
}

// resetUntil is the last released version that resets lock_timeout. Released ones do not change.
const resetUntil = 95

func TestMigrations_DoNotLockTablesForLong(t *testing.T) {
	for version, file := range newVersions(t) {
		read, err := fs.ReadFile(migrations.Files, file)
		require.NoError(t, err)
		text := string(read)
		if version <= resetUntil {
			text = strings.ReplaceAll(text, "reset lock_timeout;", "")
		}
		for _, v := range violations(text) {
			t.Errorf("%s: %s", file, v)
		}
	}
}

func TestViolations(t *testing.T) {
	for _, bad := range []string{
		`create index a_b on a (b);`,
		`create unique index a_b on a (b);`,
		"create table c (d int); create index a_b\n\ton a (b);",
		`reindex table a;`,
		`alter table a alter column b type bigint;`,
		`alter table a alter b set data type bigint;`,
		`alter table a add column c int, alter column b set not null;`,
		`alter table a add constraint c check (b > 0);`,
		`alter table a add check (b > 0);`,
		`alter table a add constraint c foreign key (b) references d;`,
		`alter table a add column b bigint references d;`,
		`alter table a add column b bigint check (b > 0);`,
		`alter table a add constraint c unique (b);`,
		`alter table a add primary key (b);`,
		`alter table a add column b timestamptz not null default clock_timestamp();`,
		`alter table a add column b bigserial;`,
		`alter table a add column b int generated always as (c + 1) stored;`,
		`alter table a set unlogged;`,
		`update a set b = 1;`,
		`delete from a;`,
		`lock table a;`,
		`set lock_timeout = '1min'; reset lock_timeout;`,
		`alter table a add constraint c check (b > 0) not valid; alter table a validate constraint c;`,
	} {
		if len(violations(bad)) == 0 {
			t.Errorf("this was allowed: %s", bad)
		}
	}
	for _, good := range []string{
		`create index concurrently a_b on a (b);`,
		`create index a_b on only a (b);`, // on a partitioned table it reads no row
		`create table a (b int primary key, c int references d, check (b > 0)); create index a_c on a (c); update a set b = 1;`,
		`alter table a add column b text not null default '';`,
		`alter table a add column b boolean;`,
		`alter table a add column check_at timestamptz default now();`, // one value for all rows
		`alter table a add constraint c check (b > 0) not valid;`,
		`alter table a validate constraint c;`,
		`alter table a add constraint c unique using index a_b;`,
		`alter table a set (fillfactor = 80); -- create index a_b on a (b);`,
		"create function f() returns void language sql as $$ update a set b = 1; $$;",
		`drop index if exists a_b;`,
	} {
		if found := violations(good); len(found) > 0 {
			t.Errorf("this was refused: %s\n%v", good, found)
		}
	}
}

// Rewriting a table locks it against every statement until the end.
func TestMigrations_RewriteNoTable(t *testing.T) {
	p := storetest.OpenAsOwner(t, storetest.NewEmptyDatabase(t))
	files := func() map[string]string {
		t.Helper()
		var rows []struct{ Name, File string }
		require.NoError(t, p.Pool.Select(&rows, `select oid::regclass::text as name, pg_relation_filenode(oid)::text as file from pg_class
			where relkind in ('r', 'i') and relnamespace = 'public'::regnamespace`))
		of := map[string]string{}
		for _, row := range rows {
			of[row.Name] = row.File
		}
		return of
	}
	require.NoError(t, p.MigrateTo(t.Context(), lockFreeSince))
	versions := newVersions(t)
	for _, version := range slices.Sorted(maps.Keys(versions)) {
		before := files()
		if len(before) < 40 {
			t.Fatalf("found only %d tables and indexes: %v", len(before), before)
		}
		require.NoError(t, p.MigrateTo(t.Context(), version))
		after := files()
		for name, file := range before {
			if now, ok := after[name]; ok && now != file {
				t.Errorf("%s rewrites %s", versions[version], name)
			}
		}
	}
}
