package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/operators"
	accounts "motorpool/store/operators"
	"motorpool/telematics"
)

// asRole returns the address of the database for a new role with the rights of docs/install.md.
func (s *stack) asRole() string {
	s.Helper()
	role := fmt.Sprintf("service_%d", time.Now().UnixNano())
	_, err := s.owner.Pool.Exec(`create role ` + role + ` login password 'of ` + role + `'; grant pg_read_all_stats to ` + role)
	s.must(err)
	s.Cleanup(func() {
		if _, err := s.owner.Pool.Exec(`drop owned by ` + role + `; drop role ` + role); err != nil && s.postgres == nil {
			s.Error(err)
		}
	})
	s.must(s.owner.Grant(context.WithoutCancel(s.Context()), role))
	address, err := url.Parse(s.database)
	s.must(err)
	address.User = url.UserPassword(role, "of "+role)
	return address.String()
}

func TestServe_MovesSettledCommands(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	const old = "019b0000-0000-7000-8000-000000000001"
	_, err := s.owner.Pool.Exec(`
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, state,
			requested_at, completed_at, deadline)
		select id, 1, 1, 'car-1', 'lock', 'access', 'a', 'admin-7', 'admin', 'succeeded',
			command_id_time(id), command_id_time(id), command_id_time(id)
		from (values ('` + old + `'::uuid)) as c (id)`)
	s.must(err)
	i := s.serve()
	s.eventually(30*time.Second, "the old command was moved", func() bool {
		var moved bool
		s.must(s.owner.Pool.Get(&moved, `select exists (select from settled_commands where id = $1)`, old))
		return moved
	})
	i.get("/api/v1/admin/commands/"+old, nil).wants(200).has("data.state", `"succeeded"`)
}

// aclOfRedis is the account of docs/servers.md.
var aclOfRedis = regexp.MustCompile(`(?m)^ *user motorpool on >… (.*)$`)

// The account of Redis in the documentation may do all that the service does.
func TestServe_AsTheRestrictedAccountOfRedis(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	docs, err := os.ReadFile("../../docs/servers.md")
	s.must(err)
	rules := aclOfRedis.FindStringSubmatch(string(docs))
	if rules == nil {
		t.Fatal("docs/servers.md has no account")
	}
	options, err := redis.ParseURL(s.redisURL)
	s.must(err)
	server := redis.NewClient(options)
	defer server.Close()
	setUser := []any{"acl", "setuser", "motorpool", "on", ">secret"}
	for rule := range strings.FieldsSeq(rules[1]) {
		setUser = append(setUser, rule)
	}
	s.must(server.Do(t.Context(), setUser...).Err())
	r := s.rent()
	restricted := func(c *app.Config) {
		c.RedisURL, c.ConsoleURL = app.Secret(strings.Replace(s.redisURL, "redis://", "redis://motorpool:secret@", 1)), "https://fleet.test"
	}
	i := r.open(restricted)
	other := r.open(restricted)
	s.drive(nil, healthy)
	stream := other.follow(i.admin, "")
	for _, at := range []*instance{i, other} {
		at.control(1, telematics.Lock).wants(200)
	}
	i.follow(i.admin, stream.lastID())
	customer := r.newCustomer()
	customer.add(i, "pm_card_visa", true)
	customer.book(i, 1, fromNow(time.Minute))
	const password = "correct horse battery"
	_, err = accounts.Store{DB: s.owner}.Add(t.Context(), operators.Operator{
		Name: "anna", Role: operators.Viewer, Scopes: []string{"all_agencies"}, Password: operators.HashPassword(password),
	}, nil, telematics.OperatorAt("test"))
	s.must(err)
	for word, want := range map[string]int{password: 200, "wrong": 401} {
		response, err := http.PostForm(i.base+"/auth/sign-in", url.Values{"name": {"anna"}, "password": {word}})
		s.must(err)
		s.must(response.Body.Close())
		assert.Equal(t, response.StatusCode, want, "sign-in")
	}
	denied, err := server.Do(t.Context(), "acl", "log").Slice()
	s.must(err)
	for _, entry := range denied {
		t.Errorf("Redis denied %v", entry)
	}
}
