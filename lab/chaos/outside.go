package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/atomicfile"
	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/network"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// Faults by others: operators, other programs, and settings of servers.

// hold keeps a transaction open in which a statement took locks.
func (r *round) hold(ctx context.Context, f Fault, statement string, vehicles ...telematics.VehicleID) error {
	end := time.Now().Add(f.For)
	tx := r.begin(ctx, end, statement)
	if tx == nil {
		return nil
	}
	lock := audit.Lock{What: f.Target, Vehicles: vehicles, Interval: audit.Interval{From: time.Now()}}
	world.Pause(ctx, time.Until(end))
	lock.To = time.Now()
	_ = tx.Rollback() // Postgres may have ended meanwhile
	r.locks.Add(lock)
	return nil
}

// begin returns a transaction in which a statement was executed. It retries until a time, as other
// faults may strike Postgres; nil: it did not succeed.
func (r *round) begin(ctx context.Context, until time.Time, statement string) *sql.Tx {
	for ; time.Now().Before(until) && ctx.Err() == nil; world.Pause(ctx, operatorRetry) {
		tx, err := r.watcher.db.BeginTx(ctx, nil)
		if err != nil {
			r.Log.Info("nothing locked: postgres is unavailable", "err", err)
			continue
		}
		if _, err = tx.ExecContext(ctx, statement); err == nil {
			return tx
		}
		_ = tx.Rollback() // the statement's error counts
		r.Log.Info("nothing locked", "err", err)
	}
	return nil
}

// lockVehicles is an operator who has changed vehicles and does not commit.
func (r *round) lockVehicles(ctx context.Context, f Fault) error {
	var locked []telematics.VehicleID
	for car := 1; car <= r.Vehicles; car++ {
		if f.Target == LockedVehicles(int(agencyOf(car))) || car == 1 && f.Target == LockedVehicles(0) {
			locked = append(locked, telematics.VehicleID(car))
		}
	}
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(locked), " ", ","), "[]")
	return r.hold(ctx, f, `update vehicles set color = color where id in (`+ids+`)`, locked...)
}

// lockTable is another client that locks a table without which commands can be executed, as a
// change of the schema does, while many callers make requests that need the table.
func (r *round) lockTable(ctx context.Context, f Fault) error {
	for _, table := range LockedTables {
		if f.Target == LockedTable(table) {
			stop := r.useTables(ctx)
			defer stop()
			return r.hold(ctx, f, `lock table `+table+` in access exclusive mode`)
		}
	}
	return fmt.Errorf("no table is called %s", f.Target)
}

const (
	tableCallers = 48
	tableEvery   = 100 * time.Millisecond // between two requests of one of them
)

// useTables makes requests that need one of the lockable tables, until stop is called.
func (r *round) useTables(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	transport := &http.Transport{MaxIdleConnsPerHost: tableCallers}
	client := &http.Client{Transport: transport, Timeout: callTimeout}
	var callers sync.WaitGroup
	for n := range tableCallers {
		callers.Go(func() {
			for i := n; ctx.Err() == nil; i++ {
				if i%2 == 0 { // each is another client's, which is within its limit
					r.changeOf(ctx, client, fmt.Sprintf("client-%d-%d", n, i), i%r.Instances)
				} else {
					r.read(ctx, client, []string{"charges", "vehicles/1/history", "units/unknown"}[i/2%3], i%r.Instances)
				}
				world.Pause(ctx, tableEvery)
			}
		})
	}
	return func() { cancel(); callers.Wait(); transport.CloseIdleConnections() }
}

// changeOf sends a signed change of a client, and ignores the answer.
func (r *round) changeOf(ctx context.Context, callers *http.Client, subject string, instance int) {
	token, err := r.Token(telematics.Actor{Subject: subject, Role: telematics.Client, Agency: 1})
	if err == nil {
		_, err = r.change(ctx, callers, token, r.signChange(token), instance)
	}
	if err != nil {
		r.Log.Debug("change not answered", "err", err)
	}
}

// read gets a resource, and ignores the answer.
func (r *round) read(ctx context.Context, callers *http.Client, path string, instance int) {
	var body any
	list := world.Request{Method: http.MethodGet, URL: r.Running[instance].Public + "/api/v1/admin/" + path, Token: r.admin}
	if _, _, err := list.Do(ctx, callers, &body); err != nil {
		r.Log.Debug("not answered", "path", path, "err", err)
	}
}

// forbidWrites makes Postgres read-only, as a demoted primary behind the same address is.
func (r *round) forbidWrites(ctx context.Context, f Fault) error {
	defer r.down(Postgres)()
	return r.whileSet(ctx, f.For,
		func(ctx context.Context) error {
			return r.set(ctx, `alter system set default_transaction_read_only = on`)
		},
		func(ctx context.Context) error {
			return r.set(ctx, `alter system reset default_transaction_read_only`)
		})
}

// whileSet changes a setting of a server for a while. It retries, as other faults may strike the
// server.
func (r *round) whileSet(ctx context.Context, length time.Duration, set, reset func(context.Context) error) error {
	for _, change := range []func(context.Context) error{set, reset} {
		changed := func(ctx context.Context) bool {
			err := change(ctx)
			if err != nil {
				r.Log.Debug("setting not changed, retrying", "err", err)
			}
			return retryLater(ctx, err == nil)
		}
		if err := world.Eventually(context.WithoutCancel(ctx), operatorTimeout, "a server's setting changed", changed); err != nil {
			return err
		}
		world.Pause(ctx, length)
		length = 0
	}
	return nil
}

// set changes a setting of Postgres, by a statement for which it must not be read-only.
func (r *round) set(ctx context.Context, statement string) error {
	db, err := sql.Open("postgres", r.Postgres.URL()+"&connect_timeout=2&default_transaction_read_only=off")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	if err == nil {
		_, err = db.ExecContext(ctx, `select pg_reload_conf()`)
	}
	return err
}

// policyFor is how long each eviction policy holds at least.
const policyFor = 2 * time.Second

// evict lets Redis have less memory than its data needs, with one of its policies for what it
// deletes then, or as many one after the other as the fault has time for.
func (r *round) evict(ctx context.Context, f Fault) error {
	policies := min(max(1, int(f.For/policyFor)), len(EvictionPolicies))
	for i := range policies {
		policy := EvictionPolicies[(int(f.Amount)+i)%len(EvictionPolicies)]
		var before int
		if err := r.whileSet(ctx, f.For/time.Duration(policies),
			func(ctx context.Context) error {
				used, err := r.redisNumber(ctx, "memory", "used_memory")
				data, failure := r.redisNumber(ctx, "memory", "used_memory_dataset")
				if err = errors.Join(err, failure); err != nil {
					return err
				}
				if before, err = r.evictions(ctx); err != nil {
					return err
				}
				return errors.Join(r.redis.ConfigSet(ctx, "maxmemory-policy", policy).Err(),
					r.redis.ConfigSet(ctx, "maxmemory", fmt.Sprint(used-data/2)).Err())
			},
			func(ctx context.Context) error {
				after, err := r.evictions(ctx)
				if err != nil {
					return err
				}
				evicted := after - before
				if evicted < 0 { // it was restarted
					evicted = after
				}
				r.evicted.Add(int64(evicted))
				r.Log.Info("redis evicted", "policy", policy, "keys_and_refused_writes", evicted)
				before = after
				return errors.Join(
					r.redis.ConfigSet(ctx, "maxmemory", "0").Err(),
					r.redis.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err(),
				)
			}); err != nil {
			return err
		}
	}
	return nil
}

// evictions counts the keys that Redis has evicted, and the writes that it has refused as it is
// full.
func (r *round) evictions(ctx context.Context) (int, error) {
	evicted, err := r.redisNumber(ctx, "stats", "evicted_keys")
	refused, failure := r.fullErrors(ctx)
	return evicted + refused, errors.Join(err, failure)
}

// blockLog is a reader of an instance's log that reads no more.
func (r *round) blockLog(ctx context.Context, f Fault) error {
	n := r.Running[r.instance(f.Target)]
	n.Reader.Lock()
	defer n.Reader.Unlock()
	ctx, over := context.WithTimeout(ctx, f.For)
	defer over()
	r.fillLog(ctx, n)
	<-ctx.Done()
	return nil
}

// fillLog makes requests that fill the pipe of an instance's log, with its long path in each line.
func (r *round) fillLog(ctx context.Context, n *world.Instance) {
	path := "/api/v1/" + strings.Repeat("x", 2000)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 100 { // more than the instance keeps of its log
				if request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Public+path, nil); err == nil {
					if response, err := folder.Probe.Do(request); err == nil {
						_ = response.Body.Close() // its content does not matter
					}
				}
			}
		})
	}
	callers.Wait()
}

// deafen lets an instance connect and subscribe, and get no message.
func (r *round) deafen(ctx context.Context, f Fault) error {
	line := r.lines[f.Target]
	deaf := network.NewDeafness()
	line.SetToxic(deaf)
	line.Cut() // a new connection, of which the toxic sees the first packet
	if err := line.Mend(); err != nil {
		return err
	}
	world.Pause(ctx, deafAfter)
	deaf.Begin()
	world.Pause(ctx, f.For-deafAfter)
	line.RemoveToxic()
	line.Cut() // what was not delivered is lost
	return line.Mend()
}

// deafAfter is how long an instance takes at most to connect and subscribe again.
const deafAfter = 2 * time.Second

// signWithForeignKey gives an instance another key than the others have.
func (r *round) signWithForeignKey(ctx context.Context, f Fault) error {
	file := r.signingFile(r.instance(f.Target))
	key, err := signing.NewKey()
	if err != nil {
		return err
	}
	foreign, err := (signing.Keychain{}).Add(key, time.Now())
	if err != nil {
		return err
	}
	r.keys.add(key.Keyring()) // the service signs with it, so it is not forged
	r.foreign.Add(audit.Interval{From: time.Now()})
	if err := errors.Join(writeKeys(file+".new", foreign), os.Rename(file+".new", file)); err != nil {
		return err
	}
	world.Pause(ctx, f.For)
	return r.linkKeys(file)
}

// linkKeys makes a file the one of the fleet's keys.
func (r *round) linkKeys(file string) error {
	return errors.Join(os.Symlink(r.Path(folder.SigningFile), file+".new"), os.Rename(file+".new", file))
}

func writeKeys(file string, chain signing.Keychain) error {
	jwks, err := chain.Encode()
	if err != nil {
		return err
	}
	return atomicfile.Write(file, jwks)
}

// signingFile is the file of an instance's signing keys: a link to that of all, but while the
// instance has a foreign key.
func (r *round) signingFile(instance int) string {
	return r.Path(fmt.Sprintf("signing-%d.jwks", instance))
}

// soundCars are vehicles whose commands succeed, but for their own sake or the service's.
func (r *round) soundCars() map[telematics.VehicleID]bool {
	sound := map[telematics.VehicleID]bool{}
	for car := 1; car <= r.fleet.v1; car++ {
		sound[telematics.VehicleID(car)] = profileOf(car).Name == ""
	}
	return sound
}

// copyAge is how old the copy of a database is at least when a service starts with it. One that is
// younger than the beats on their way is taken for the original at first.
const copyAge = 3 * time.Second

// copyInstallation is an operator who restores the database for tests, and starts a service on the
// copy, at the same MQTT broker. That must refuse to start, or never be ready.
func (r *round) copyInstallation(ctx context.Context, f Fault) error {
	database, err := r.Postgres.StartStandby(
		ctx, devstack.StandbyConfig{Dir: r.Path("copied-postgres"), Logger: r.LogFile("copied postgres")},
	)
	if err != nil {
		return err
	}
	err = database.Promote(ctx)
	promoted := time.Now()
	cache, failure := devstack.StartRedis(r.Path("copied-redis"), nil)
	if err = errors.Join(err, failure); err != nil {
		return errors.Join(err, database.Discard())
	}
	r.InUse.AddURL("password of the copied redis", cache.URL())
	world.Pause(ctx, time.Until(promoted.Add(copyAge)))
	n, err := r.StartInstance(ctx, world.InstanceConfig{Name: "copied instance", DatabaseURL: database.URL(), RedisURL: cache.URL()})
	if err != nil {
		r.Log.Info("the copied installation did not start", "err", err)
	} else {
		r.Running = r.Running[:r.Instances] // it is none of those that must be ready
		for end := time.Now().Add(f.For); time.Now().Before(end) && ctx.Err() == nil; world.Pause(ctx, operatorRetry) {
			if n.Ready(ctx) {
				r.awaited.Add(errors.New("a service with a copy of the database was ready"))
				break
			}
		}
		r.Log.Info("the copied installation is killed")
		if err := n.Kill(); err != nil {
			return errors.Join(err, cache.Close(), database.Discard())
		}
	}
	if failure := errors.Join(cache.Close(), database.Discard()); failure != nil {
		return fmt.Errorf("end the copied installation: %w", failure)
	}
	return nil
}
