package migrations_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/migrations"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// schemaOf is the schema of a release, or of a build between two releases.
type schemaOf struct {
	name    string
	highest int64
	count   int
	missing []int64 // below the highest
}

// numbers returns the numbers of its migrations.
func (s schemaOf) numbers(t *testing.T) []int64 {
	t.Helper()
	var numbers []int64
	for number := range files(t) {
		if number <= s.highest && !slices.Contains(s.missing, number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// earlier returns the schemas from which a database can be upgraded, releases in their order first.
func earlier(t *testing.T) (schemas []schemaOf) {
	t.Helper()
	file, err := os.Open("testdata/releases")
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		s := schemaOf{name: words[0]}
		for i, word := range words[1:] {
			n, err := strconv.ParseInt(word, 10, 64)
			require.NoError(t, err, "%s", lines.Text())
			switch i {
			case 0:
				s.highest = n
			case 1:
				s.count = int(n)
			default:
				s.missing = append(s.missing, n)
			}
		}
		schemas = append(schemas, s)
	}
	if lines.Err() != nil || len(schemas) < 10 {
		t.Fatalf("%d schemas, %v", len(schemas), lines.Err())
	}
	return schemas
}

// releases returns the releases, the newest last.
func releases(t *testing.T) []schemaOf {
	t.Helper()
	return slices.DeleteFunc(earlier(t), func(s schemaOf) bool { return !strings.HasPrefix(s.name, "v") })
}

// A database of any release, and of any build between two releases whose numbers were out of order,
// gets the schema that an empty one gets. One of a release between the oldest and the newest gets
// the same migrations, in the same order, as one of the oldest.
func TestMigrate_UpgradesEachReleaseAndBuildsWithoutLowerNumbers(t *testing.T) {
	t.Parallel()
	want := schema(t, storetest.OpenAsOwner(t, storetest.NewDatabase(t)))
	released := releases(t)
	for _, s := range earlier(t) {
		if strings.HasPrefix(s.name, "v") && s.name != released[0].name && s.name != released[len(released)-1].name {
			continue
		}
		t.Run(fmt.Sprintf("%s %d without %v", s.name, s.highest, s.missing), func(t *testing.T) {
			t.Parallel()
			db := storetest.OpenAsOwner(t, storetest.NewEmptyDatabase(t))
			apply(t, db, s.numbers(t)...)
			if err := db.Migrated(t.Context()); err == nil && len(s.numbers(t)) < len(files(t)) {
				t.Error("Migrated does not report that migrations are missing")
			}
			storetest.AddVehicle(t, db, 1, telematics.Lock)
			_, err := db.Migrate(t.Context())
			require.NoError(t, err)
			require.NoError(t, db.Grant(t.Context(), storetest.Service))
			assert.NoError(t, db.Migrated(t.Context()))
			if lines := difference(schema(t, db), want); len(lines) > 0 {
				t.Errorf("the schema differs from that of an empty database:\n%s", strings.Join(lines, "\n"))
			}
		})
	}
}

// A database that lacks a number in the middle is not ready, although it has the highest one.
func TestMigrated_NamesAMissingLowerNumber(t *testing.T) {
	t.Parallel()
	db := storetest.OpenAsOwner(t, storetest.NewDatabase(t))
	require.NoError(t, db.Migrated(t.Context()))
	storetest.Exec(t, db.Pool, `delete from goose_db_version where version_id = 58`)
	if err := db.Migrated(t.Context()); err == nil || !strings.Contains(err.Error(), "motorpool migrate") {
		t.Errorf("Migrated = %v, want what to do", err)
	}
}

// Some migrations were edited after builds had applied them. Such databases get the edits, too.
func TestMigrate_RepairsWhatEditedMigrationsLeft(t *testing.T) {
	t.Parallel()
	want := schema(t, storetest.OpenAsOwner(t, storetest.NewDatabase(t)))
	db := storetest.OpenAsOwner(t, storetest.NewEmptyDatabase(t))
	const repair = 91
	for _, release := range slices.Backward(releases(t)) {
		if release.highest < repair {
			apply(t, db, release.numbers(t)...)
			break
		}
	}
	for _, statement := range []string{
		`alter table commands drop column booking_id`,
		`alter table charges drop column requested_by`,
		`alter table bookings rename column cause to identity`,
		`create or replace function add_settled_commands_partition(month timestamp) returns void language plpgsql as $$ begin end $$`,
		`create or replace function command_awaiting_answer(asked text) returns uuid language sql volatile as $$ select id from commands
			where unit = asked $$`,
	} {
		storetest.Exec(t, db.Pool, statement)
	}
	_, err := db.Migrate(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.Grant(t.Context(), storetest.Service))
	if lines := difference(schema(t, db), want); len(lines) > 0 {
		t.Errorf("the schema differs from that of an empty database:\n%s", strings.Join(lines, "\n"))
	}
}

// A migration that is added below the highest number of a release would be applied after it by
// databases of that release, and before it by new ones.
func TestMigrations_AreNumberedAfterThoseOfReleases(t *testing.T) {
	for _, s := range earlier(t) {
		if numbers := s.numbers(t); len(numbers) != s.count {
			t.Errorf(
				"%s %d had %d migrations, there are %d now: number a new migration after the last one, and remove none",
				s.name, s.highest, s.count, len(numbers),
			)
		}
	}
}

// unused are tables that nothing uses any more, with the last release whose instances ask for their
// rights to them: those would not be ready without the table.
var unused = map[string]string{"activity_seals": "v0.7.0", "addresses": "v0.7.0", "geocoder_turn": "v0.7.0"}

// When another release was made, the first migration after it can drop the tables.
func TestMigrations_DropWhatOnlyEarlierReleasesUse(t *testing.T) {
	released := releases(t)
	newest, numbers := released[len(released)-1], slices.Collect(maps.Keys(files(t)))
	for table, user := range unused {
		if newest.name != user && slices.Max(numbers) > newest.highest {
			t.Errorf(
				"%s does not use the table %s any more: drop it in a migration, and remove it here and in TestRights_NameEveryTable",
				newest.name, table,
			)
		}
	}
}

// apply applies the migrations with these numbers to an empty database, as a build that has no
// others does.
func apply(t *testing.T, db *pg.DB, numbers ...int64) {
	t.Helper()
	chosen := fstest.MapFS{}
	for number, name := range files(t) {
		if slices.Contains(numbers, number) {
			text, err := fs.ReadFile(migrations.Files, name)
			require.NoError(t, err)
			chosen[name] = &fstest.MapFile{Data: text}
		}
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db.Pool.DB, chosen)
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.NoError(t, err)
}

// schema returns one line for each column, constraint, index, function and trigger of a database.
// Columns have no order: statements name them.
func schema(t *testing.T, db *pg.DB) []string {
	t.Helper()
	var lines []string
	require.NoError(t, db.Pool.SelectContext(t.Context(), &lines, `
		with relations as (
			select oid, relname, relkind, relpersistence, reloptions, relacl from pg_class
			where relnamespace = current_schema()::regnamespace and relname not like 'goose_db_version%')
		select format('relation %s %s %s %s %s', relname, relkind, relpersistence, reloptions, relacl) from relations where relkind <> 'i'
		union all
		select format('column %s.%s %s not null %s %s%s default %s', relname, attname, format_type(atttypid, atttypmod), attnotnull,
		attidentity, attgenerated, pg_get_expr(adbin, adrelid))
			from relations r join pg_attribute a on a.attrelid = r.oid left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
			where a.attnum > 0 and not a.attisdropped and relkind not in ('i', 'I')
		union all
		select format('constraint %s.%s %s valid %s', relname, conname, pg_get_constraintdef(c.oid), convalidated) from relations r
		join pg_constraint c on c.conrelid = r.oid
		union all
		select format('index %s valid %s', pg_get_indexdef(indexrelid), indisvalid) from relations r join pg_index i on i.indrelid = r.oid
		union all
		select format('trigger %s enabled %s', pg_get_triggerdef(t.oid), tgenabled) from relations r join pg_trigger t on t.tgrelid = r.oid
		where not tgisinternal
		union all
		select format('partition %s %s', relname, pg_get_expr(c.relpartbound, c.oid)) from relations r join pg_class c using (oid, relname)
		where c.relispartition
		union all
		select format('function %s %s', pg_get_functiondef(p.oid), proacl) from pg_proc p join pg_language l on l.oid = p.prolang
			where pronamespace = current_schema()::regnamespace and l.lanname in ('sql', 'plpgsql')
		union all
		select format('view %s %s', viewname, definition) from pg_views where schemaname = current_schema()
		order by 1`))
	return lines
}

// difference describes what a schema lacks of another one, and has beyond it.
func difference(got, want []string) (lines []string) {
	for _, line := range want {
		if !slices.Contains(got, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return lines
}

// files returns the names of the migrations by number.
func files(t *testing.T) map[int64]string {
	t.Helper()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	found := map[int64]string{}
	for _, name := range names {
		found[versionOf(t, name)] = name
	}
	return found
}
