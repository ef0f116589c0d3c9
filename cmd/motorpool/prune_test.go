package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/commands"
	"motorpool/store/pg"
	"motorpool/store/storetest"
)

// aYear has 100 settled commands for each of the last 14 months; every second one belongs to a bulk
// command.
const aYear = `
	with month as (
		select n, date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' - n * interval '1 month' + interval '1 hour' as at
		from generate_series(1, 14) as n
	), bulk as (
		insert into bulks (id, action, vehicle_ids, actor_subject, actor_role, requested_at)
		select command_id_at(at), 'lock', '{1}', 'admin-7', 'admin', at from month
	)
	insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, state, requested_at,
	completed_at, deadline, bulk_id)
	select overlay(overlay(command_id_at(at)::text placing '7' from 15) placing lpad(i::text, 4, '0')
	from 33)::uuid, 1, 1, 'unit-1', 'lock', 'access', 'a', 'admin-7', 'admin',
		case i % 3 when 0 then 'unknown' else 'succeeded' end, at, at, at, case i % 2 when 0 then command_id_at(at) end
	from month, generate_series(1, 100) as i`

func TestPrune_AYear(t *testing.T) {
	postgres, address := recorded(t)
	storetest.AddVehicle(t, postgres, 1)
	storetest.Exec(t, postgres.Pool, aYear)
	record := commands.New(postgres, nil)
	for more := true; more; {
		var err error
		if more, err = record.MoveSettled(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	prune := func(args ...string) string {
		t.Helper()
		printed, err := output(t, append([]string{"prune", "--database-url", address}, args...)...)
		require.NoError(t, err)
		return printed
	}
	left := func() (n int) {
		t.Helper()
		require.NoError(t, postgres.Pool.Get(&n, `select count(*) from settled_commands`))
		return n
	}
	if got := prune(); strings.Contains(got, "settled_commands_") || left() != 1400 {
		t.Errorf("by default: %s%d commands are left", got, left())
	}
	if got := prune("--keep-activity", "0"); !strings.Contains(got, "the whole audit log is kept") {
		t.Errorf("--keep-activity 0: %s", got)
	}
	if got := prune("--keep-commands", "0"); !strings.Contains(got, "all commands are kept") ||
		!strings.Contains(got, "the audit log is kept from 20") || left() != 1400 {
		t.Errorf("keep all: %s%d commands are left", got, left())
	}
	if got := prune("--keep-commands", "4", "--dry-run"); strings.Count(got, "would remove settled_commands_") != 10 || left() != 1400 {
		t.Errorf("dry run: %s%d commands are left", got, left())
	}
	since, err := postgres.KeepSince(t.Context(), 4)
	require.NoError(t, err)
	got := prune("--keep-commands", "4")
	if strings.Count(got, "removed settled_commands_") != 10 || !strings.Contains(got, "removed 10 orders") ||
		!strings.Contains(got, since.Format(time.DateOnly)) ||
		left() != 400 {
		t.Errorf("prune: %s%d commands are left", got, left())
	}
	if got := prune("--keep-commands", "4"); strings.Contains(got, "settled_commands_") {
		t.Errorf("a repeated prune: %s", got)
	}
}

func TestPrune_RefusesMonthsOutOfRangeAndNeedsADatabase(t *testing.T) {
	for _, args := range []string{"--keep-commands=1", "--keep-commands=2", "--keep-commands=100000", "--keep-activity=100000"} {
		tool(t, "prune", args).exits(exitUsage).fails("to 1200")
	}
	tool(t, "prune", "--database-url", "postgres://127.0.0.1:1/none").fails("right database")
}

// The owner of the tables grants the service's role its rights, and no others.
func TestMigrate_GrantTo(t *testing.T) {
	postgres, address := recorded(t)
	role := fmt.Sprintf("app_%d", time.Now().UnixNano())
	storetest.Exec(t, postgres.Pool, `create role `+role+` login password 'secret'`)
	t.Cleanup(func() {
		if _, err := postgres.Pool.Exec(`drop owned by ` + role + `; drop role ` + role); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(address)
	require.NoError(t, err)
	u.User = url.UserPassword(role, "secret")
	service, err := pg.New(pg.Config{URL: u.String()})
	require.NoError(t, err)
	defer service.Close()
	if err := service.Allowed(t.Context()); err == nil {
		t.Error("a new role has all rights before the grant")
	}
	tool(t, "migrate", "--database-url", address, "--grant-to", role).prints(role + " has the rights")
	assert.NoError(t, service.Allowed(t.Context()))
	assert.NoError(t, service.Migrated(t.Context()))
	tool(t, "prune", "--database-url", u.String(), "--keep-commands", "3").fails("run it as the role that owns the tables")
	tool(t, "migrate", "--database-url", address, "--grant-to", "no_such_role").fails("does not exist")
}
