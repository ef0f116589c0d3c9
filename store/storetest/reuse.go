package storetest

import (
	"sync"

	"github.com/jmoiron/sqlx"
)

// A database whose test has ended is emptied for another test: that takes a tenth of the CPU time
// of a copy of the template, which has 570 files.

// remember has a database know what it contains, in the schema original, whose function reset
// brings that back. It reports false where tables or functions are not those of then, where there
// are statistics of rows, or where files have grown: then a test could find what another one left.
const remember = `
	create schema original;
	create table original.state (catalog text, bytes bigint);
	create table original.sequences as select sequencename::text as name, start_value, last_value from pg_sequences
		where schemaname = 'public';
	do $$ declare t name; filled boolean; begin
		for t in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and not relispartition loop
			execute format('select exists (select from %I)', t) into filled;
			if filled then execute format('create table original.%I as table public.%1$I', t); end if;
		end loop;
	end $$;
	create function original.catalog() returns text language sql as $$
		select string_agg(concat_ws(' ', changed, n), ', ') from (
			select sum(xmin::text::bigint) + sum(greatest(reltuples, 0)) as changed, count(*) as n from pg_class
			union all select sum(xmin::text::bigint), count(*) from pg_attribute
			union all select sum(xmin::text::bigint), count(*) from pg_proc
			union all select sum(xmin::text::bigint), count(*) from pg_trigger
			union all select sum(xmin::text::bigint), count(*) from pg_constraint
			union all select sum(xmin::text::bigint), count(*) from pg_index
			union all select sum(xmin::text::bigint), count(*) from pg_namespace
			union all select 0, count(*) from pg_db_role_setting
				where setdatabase = (select oid from pg_database where datname = current_database())) as parts
	$$;
	create function original.reset() returns boolean language plpgsql as $$ declare t name; begin
		if not exists (select from original.state where catalog = original.catalog()
			and pg_database_size(current_database()) < bytes + 1000000) then
			return false;
		end if;
		set local session_replication_role = replica;
		for t in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
			and not relispartition loop
			execute format('delete from public.%I', t);
			if to_regclass(format('original.%I', t)) is not null then
				execute format('insert into public.%I overriding system value table original.%1$I', t);
			end if;
		end loop;
		perform setval(format('public.%I', name), coalesce(last_value, start_value), last_value is not null) from original.sequences;
		return true;
	end $$;
	insert into original.state select original.catalog(), pg_database_size(current_database())`

// unused are databases that were emptied.
var unused struct {
	mu    sync.Mutex
	names []string
}

// takeUnused returns the name of a database that was emptied; empty: there is none.
func takeUnused() (name string) {
	unused.mu.Lock()
	defer unused.mu.Unlock()
	if last := len(unused.names) - 1; last >= 0 {
		name, unused.names = unused.names[last], unused.names[:last]
	}
	return name
}

// empty makes a database of the template available to other tests, under another name, which what
// is left of its test does not find. One that cannot be emptied is used no more.
func (p Postgres) empty(name string) {
	next := nextName()
	for _, statement := range []string{
		`select pg_terminate_backend(pid) from pg_stat_activity where datname = '` + name + `'`,
		`alter database ` + name + ` rename to ` + next,
	} {
		if _, err := p.admin.Exec(statement); err != nil {
			return
		}
	}
	db, err := sqlx.Open("postgres", p.Database(next))
	if err != nil {
		return
	}
	defer db.Close()
	var done bool
	if err := db.Get(&done, `select original.reset()`); err == nil && done {
		unused.mu.Lock()
		defer unused.mu.Unlock()
		unused.names = append(unused.names, next)
	}
}
