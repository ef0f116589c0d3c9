package service_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// asRole returns the address of the database for a new role with the rights of the service.
func (s *stack) asRole(owner *pg.DB, role string) string {
	s.Helper()
	_, err := owner.Pool.Exec(`create role ` + role + ` login password 'secret'`)
	s.must(err)
	s.Cleanup(func() {
		if _, err := owner.Pool.Exec(`drop owned by ` + role + `; drop role ` + role); err != nil {
			s.Error(err)
		}
	})
	s.must(owner.Grant(s.Context(), role))
	address, err := url.Parse(s.database)
	s.must(err)
	address.User = url.UserPassword(role, "secret")
	return address.String()
}

// The service runs as a role that can neither change nor remove stored history, but moves settled
// commands.
func TestServe_AsARoleThatOwnsNoTable(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	owner, err := pg.New(pg.Config{URL: s.database})
	s.must(err)
	t.Cleanup(func() { _ = owner.Close() })
	const old = "019b0000-0000-7000-8000-000000000001"
	_, err = owner.Pool.Exec(`
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, state,
			requested_at, completed_at, deadline)
		select id, 1, 1, 'car-1', 'lock', 'access', 'a', 'admin-7', 'admin', 'succeeded',
			command_id_time(id), command_id_time(id), command_id_time(id)
		from (values ('` + old + `'::uuid)) as c (id)`)
	s.must(err)
	role := fmt.Sprintf("service_%d", time.Now().UnixNano())
	address := s.asRole(owner, role)
	i := s.serve(func(c *app.Config) { c.DatabaseURL, c.Migrate = app.Secret(address), false }, unhurried)
	s.drive(nil, healthy)

	var made command
	if r := i.control(1, telematics.Lock); r.status != 200 {
		t.Fatalf("lock: %d %s %s", r.status, r.Error.Code, r.Message)
	}
	s.eventually(30*time.Second, "the old command was moved", func() bool {
		var moved bool
		s.must(owner.Pool.Get(&moved, `select exists (select from settled_commands where id = $1)`, old))
		return moved
	})
	if r := i.get("/api/v1/admin/commands/"+old, &made); r.status != 200 || made.State != "succeeded" {
		t.Errorf("the moved command: %d %+v", r.status, made)
	}
	var entries int
	s.must(owner.Pool.Get(&entries, `select count(*) from activity where action = 'command.lock' and outcome = 'executed'`))
	if entries != 1 {
		t.Errorf("%d audit entries, want 1", entries)
	}
	service, err := pg.New(pg.Config{URL: address})
	s.must(err)
	defer service.Close()
	for _, change := range []string{
		`update settled_commands set state = 'rejected'`, `delete from settled_commands`, `delete from commands`,
		`update activity set outcome = 'failed'`, `delete from activity`,
	} {
		if _, err := service.Pool.Exec(change); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v, want permission denied", change, err)
		}
	}
}
