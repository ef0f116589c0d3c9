package commands

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/store/storetest"
)

func TestConnections_KeepTheirSettingsDespiteThoseOfRoleAndDatabase(t *testing.T) {
	address := storetest.NewDatabase(t)
	admin := open(t, address)
	var name, user string
	require.NoError(t, admin.Pool.QueryRow(`select current_database(), current_user`).Scan(&name, &user))
	for setting, value := range map[string]struct{ other, want string }{
		"synchronous_commit":            {"off", "on"},
		"default_transaction_isolation": {"serializable", "read committed"},
	} {
		for _, of := range []string{`alter database ` + name, `alter role ` + user + ` in database ` + name} {
			storetest.Exec(t, admin.Pool, of+` set `+setting+` = '`+value.other+`'`)
		}
		for named, address := range map[string]string{"unchanged": address, "set in it": address + "&" + setting + "=" + value.other} {
			p := open(t, address)
			for pool, get := range map[string]func(any, string, ...any) error{"db": p.Pool.Get, "lists": p.Lists.Get,
				"commands": p.Prepared.Pool.Get} {
				var got string
				if err := get(&got, `show `+setting); err != nil || got != value.want {
					t.Errorf("address %s, pool %s: %s is %q, %v; want %s", named, pool, setting, got, err, value.want)
				}
			}
		}
	}
}

func TestConnections_AreRefusedWhereTheServerMayLoseCommits(t *testing.T) {
	address := storetest.NewDatabase(t) // on a server without fsync
	p, err := pg.New(pg.Config{URL: address, Durable: true})
	require.NoError(t, err)
	defer p.Close()
	for name, err := range map[string]error{
		"Ping": p.Ping(t.Context()), "Suitable": p.Suitable(t.Context()), "Migrate": func() error {
			_, err := p.Migrate(t.Context())
			return err
		}(),
	} {
		if !errors.Is(err, pg.ErrUnsuitable) || !strings.Contains(err.Error(), "fsync=off, full_page_writes=off") {
			t.Errorf("%s: %v, want it refused as unsuitable", name, err)
		}
	}
	if unsafe, err := open(t, address).Unsafe(t.Context()); err != nil || unsafe != "fsync=off, full_page_writes=off" {
		t.Errorf("Unsafe = %q, %v", unsafe, err)
	}
}

func TestSuitable_RefusesAPoolerInTransactionMode(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PgBouncerServer)
	address, err := url.Parse(storetest.NewDatabase(t))
	require.NoError(t, err)
	database := strings.TrimPrefix(address.Path, "/")
	for mode, suitable := range map[string]bool{"session": true, "transaction": false, "statement": false} {
		t.Run(mode, func(t *testing.T) {
			pooler, err := devstack.StartPgBouncer(t.Context(), storetest.Server(t).Postgres, mode)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pooler.Close()) })
			p := openAsOwner(t, pooler.URL(database))
			err = p.Suitable(t.Context())
			if suitable && err != nil ||
				!suitable && (!errors.Is(err, pg.ErrUnsuitable) || !strings.Contains(err.Error(), "pool_mode=transaction")) {
				t.Errorf("Suitable = %v, want no error: %t", err, suitable)
			}
			if !suitable {
				return
			}
			if _, err := p.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
			storetest.AddVehicle(t, p.DB, 1)
			claimSettled(t, p, 1)
		})
	}
	assert.NoError(t, open(t, address.String()).Suitable(t.Context()), "Suitable without a pooler")
}

func TestSeveralHosts_TheServiceFollowsThePrimary(t *testing.T) {
	t.Parallel()
	primary := storetest.StartPostgres(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	standby, err := primary.StartStandby(ctx, devstack.StandbyConfig{Dir: primary.Dir + "/standby"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = standby.Discard() })
	address := severalAddresses(t, storetest.Template, standby, primary.Postgres)
	p := open(t, address)
	storetest.AddVehicle(t, p.DB, 1)
	last := claimSettled(t, p, 1)
	for end := time.Now().Add(storetest.Patience); ; {
		s, err := p.Standbys(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("Standbys = %+v, %v after the time limit", s, err)
		}
		if s == (pg.Standbys{Asynchronous: 1}) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.NoError(t, standby.InSync(ctx, primary.Postgres))
	assert.Equal(t, p.Lives(), 1, "before the failover: servers seen")
	require.NoError(t, primary.Kill())
	require.NoError(t, standby.Promote(ctx))
	for end := time.Now().Add(storetest.Patience); p.Ping(t.Context()) != nil; {
		if time.Now().After(end) {
			t.Fatal("the promoted standby was not found")
		}
	}
	if seq := claimSettled(t, p, 1); seq < last+1000 {
		t.Errorf("after the failover, number %d follows %d: it was not raised", seq, last)
	}
	assert.Equal(t, p.Lives(), 2, "after the failover: servers seen")
	if s, err := p.Standbys(t.Context()); err != nil || s != (pg.Standbys{}) {
		t.Errorf("Standbys after the failover = %+v, %v; want none", s, err)
	}
}

// severalAddresses returns postgres://user:password@host:port,host:port/database.
func severalAddresses(t *testing.T, database string, servers ...*devstack.Postgres) string {
	t.Helper()
	var hosts []string
	var user *url.Userinfo
	for _, server := range servers {
		u, err := url.Parse(server.URL())
		require.NoError(t, err)
		hosts, user = append(hosts, u.Host), u.User
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", user, strings.Join(hosts, ","), database)
}
