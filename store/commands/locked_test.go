package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// foreignLocks are open transactions, as of an operator, that hold rows of the odd vehicles.
var foreignLocks = map[string]string{
	"vehicles of an agency":      `update vehicles set color = 'red' where id % 2 = 1`,
	"open commands of an agency": `update commands set detail = '' where vehicle_id % 2 = 1`,
	"vehicles and their commands": `with v as (select from vehicles where id % 2 = 1 for update) select from commands
		where vehicle_id % 2 = 1 for update`,
}

// While another transaction holds rows of an agency, commands of the others are claimed and
// settled as fast as ever.
func TestCommands_LockedRowDelaysNoOther(t *testing.T) {
	for name, statement := range foreignLocks {
		t.Run(name, func(t *testing.T) {
			p := openWith(t, pg.Config{URL: storetest.NewDatabase(t), Timeout: 6 * time.Second})
			lockWait := p.Timeout() / pg.LockShare
			add := storetest.Vehicles(t, p.DB)
			var open []telematics.Command
			for id := range telematics.VehicleID(20) {
				add()
				c := brokertest.NewCommand(id+1, telematics.OpenTopCase)
				p.mustClaim(t, c)
				open = append(open, c)
			}
			others, err := p.WithoutTimeouts(t.Context(), 0)
			require.NoError(t, err)
			defer others.Close()
			tx := others.MustBegin()
			defer tx.Rollback() //nolint:errcheck // at the end of the test
			tx.MustExec(statement)

			ctx, stop := context.WithCancel(t.Context())
			var blocked sync.WaitGroup
			for n := range 10 {
				id := telematics.VehicleID(2*n + 1)
				blocked.Go(func() {
					for ctx.Err() == nil { // each outcome is right
						_, _ = p.Claim(context.Background(), brokertest.NewCommand(id, telematics.Lock))
						_, _, _ = p.Settle(context.Background(), succeeded(open[id-1]))
						_ = p.StoreProgress(context.Background(), []delivery.Note{noteOf(open[id-1].ID)})
					}
				})
			}
			time.Sleep(lockWait + lockWait/5) // all of them wait
			var took []time.Duration
			for n := range 10 {
				id := telematics.VehicleID(2*n + 2)
				c := brokertest.NewCommand(id, telematics.Lock)
				began := time.Now()
				p.mustClaim(t, c)
				took = append(took, time.Since(began))
				began = time.Now()
				assert.NoError(t, p.StoreProgress(t.Context(), []delivery.Note{noteOf(open[id-1].ID), noteOf(c.ID)}), "StoreProgress")
				took = append(took, time.Since(began))
				for _, c := range []telematics.Command{c, open[id-1]} {
					began = time.Now()
					if _, ok, err := p.Settle(t.Context(), succeeded(c)); err != nil || !ok {
						t.Fatalf("Settle = %t, %v", ok, err)
					}
					took = append(took, time.Since(began))
				}
			}
			stop()
			blocked.Wait()
			// Most, because the machine may be busy: before, each of them waited for the lock.
			if slices.Sort(took); took[len(took)*3/4] > lockWait/2 {
				t.Errorf("claims and settlements took %v, want them not to wait for the lock", took)
			}
		})
	}
}

func succeeded(c telematics.Command) delivery.Settlement {
	return delivery.Settlement{Command: c.ID, State: telematics.Succeeded, At: time.Now()}
}

// What is locked fails alone, with an error that names the lock, and works once it is released.
func TestCommands_LockedRowIsNamed(t *testing.T) {
	p := openWith(t, pg.Config{URL: storetest.NewDatabase(t)})
	registry := prometheus.NewRegistry()
	p.Register(registry)
	if err := p.Lists.Ping(); err != nil { // connect before something is locked
		t.Fatal(err)
	}
	vehicle, _ := storetest.AddVehicle(t, p.DB, 7)
	c := brokertest.NewCommand(vehicle, telematics.OpenTopCase)
	p.mustClaim(t, c)
	claim := func() error {
		_, err := p.Claim(t.Context(), brokertest.NewCommand(vehicle, telematics.Lock))
		return err
	}
	settle := func() error {
		_, ok, err := p.Settle(t.Context(), succeeded(c))
		if err == nil && !ok {
			return errors.New("without effect")
		}
		return err
	}
	for _, test := range []struct {
		lock, table string
		named       []string
		call        func() error
	}{
		{`select from vehicles where id = 7 for update`, "vehicles",
			[]string{"another transaction holds vehicle 7 since 1 s", "backend "}, claim},
		{`update vehicles set color = 'red'`, "vehicles", []string{"another transaction holds vehicle 7 since 1 s"}, claim},
		{`lock table vehicles in exclusive mode`, "vehicles", []string{"another transaction holds the table vehicles since 1 s"}, claim},
		{
			`lock table commands in access exclusive mode`, "commands",
			[]string{"another transaction holds the table commands since 1 s"}, settle,
		},
		{
			`select from commands for update`, "commands",
			[]string{"another transaction holds command " + c.ID.String() + " since 1 s"}, settle,
		},
	} {
		before := lockedCount(t, registry, test.table)
		hold(t, p.DB, test.lock, func() {
			err := test.call()
			if !unavailable.Is(err) {
				t.Fatalf("%s: %v, want the error of an unavailable server", test.lock, err)
			}
			for _, text := range test.named {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v, want it to contain %q", test.lock, err, text)
				}
			}
			if refusal := (*telematics.Error)(nil); test.table == "vehicles" && (!errors.As(err, &refusal) ||
				refusal.Code != telematics.TelematicsUnavailable || !refusal.Retryable || strings.Contains(refusal.Message, "backend")) {
				t.Errorf("%s: refused with %+v, want a retryable refusal that does not show the session", test.lock, refusal)
			}
		})
		if n := lockedCount(t, registry, test.table) - before; n != 1 {
			t.Errorf("%s: counted %v times, want once", test.lock, n)
		}
	}
	before := lockedCount(t, registry, "vehicles")
	holdAs(t, p.DB, "motorpool", `select from vehicles where id = 7 for update`, func() {
		if err := claim(); !unavailable.Is(err) {
			t.Errorf("a transaction of the service holds the vehicle: %v, want the error of an unavailable server", err)
		}
	})
	assert.Equal(t, lockedCount(t, registry, "vehicles")-before, 0, "locks of the service counted as those of another program")
	assert.NoError(t, errors.Join(claim(), settle()), "after the locks")
}

// endsWithResult is a context that ends when the result of the first batch has come.
type endsWithResult struct {
	context.Context
	looks atomic.Int64
}

func (c *endsWithResult) Done() <-chan struct{} { return nil }

func (c *endsWithResult) Err() error {
	if c.looks.Add(1) > 1 {
		return context.DeadlineExceeded
	}
	return nil
}

// A settlement whose command stays locked until its context ends has failed: it is not one that
// the lifecycle does not allow.
func TestSettle_LockedUntilTheContextEnds(t *testing.T) {
	p := openWith(t, pg.Config{URL: storetest.NewDatabase(t)})
	vehicle, _ := storetest.AddVehicle(t, p.DB, 7)
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	p.mustClaim(t, c)
	hold(t, p.DB, `select from commands for update`, func() {
		if _, ok, err := p.Settle(&endsWithResult{Context: t.Context()}, succeeded(c)); err == nil || ok {
			t.Errorf("Settle = %t, %v; want an error", ok, err)
		}
	})
	if _, ok, err := p.Settle(t.Context(), succeeded(c)); err != nil || !ok {
		t.Errorf("Settle = %t, %v after the lock", ok, err)
	}
}

// hold calls do while a transaction of another program has held a lock for more than a second.
func hold(t *testing.T, db *pg.DB, lock string, do func()) {
	t.Helper()
	holdAs(t, db, "psql", lock, do)
}

func holdAs(t *testing.T, db *pg.DB, program, lock string, do func()) {
	t.Helper()
	tx := db.Pool.MustBegin()
	defer tx.Rollback() //nolint:errcheck // at the end of the test
	tx.MustExec(`set local application_name = '` + program + `'`)
	tx.MustExec(lock)
	storetest.Eventually(t, "the transaction is a second old", func() bool { return age(t, tx) > time.Second })
	do()
}

func age(t *testing.T, tx *sqlx.Tx) time.Duration {
	t.Helper()
	var seconds float64
	require.NoError(t, tx.Get(&seconds, `select extract(epoch from clock_timestamp() - now())::float8`))
	return time.Duration(seconds * float64(time.Second))
}

func lockedCount(t *testing.T, registry *prometheus.Registry, table string) float64 {
	t.Helper()
	found, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range found {
		for _, metric := range family.Metric {
			if family.GetName() == "motorpool_locked_total" && metric.Label[0].GetValue() == table {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// Two requests with one new key, and one whose key is in use, fail no other claim of their batch.
func TestClaim_KeyInUseFailsNoOther(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	used, twice := brokertest.NewKey(), brokertest.NewKey()
	keys := []*telematics.IdempotencyKey{nil, twice, twice, used, brokertest.NewKey(), nil}
	var batch []telematics.Command
	for _, key := range keys {
		id, _ := add()
		c := brokertest.NewCommand(id, telematics.Lock)
		c.Key = key
		batch = append(batch, c)
	}
	earlier, _ := add()
	first := brokertest.NewCommand(earlier, telematics.Lock)
	first.Key = used
	p.mustClaim(t, first)
	claims, err := p.claim(t.Context(), pointers(batch))
	require.NoError(t, err, "the batch failed")
	for i, want := range []string{"taken", "taken", "undecided", "key taken", "taken", "taken"} {
		c := claims[i]
		if c.Taken() != (want == "taken") || c.KeyTaken != (want == "key taken") || c.undecided() != (want == "undecided") {
			t.Errorf("claim %d: %+v, want %s", i, c, want)
		}
	}
	if claim, err := p.Claim(t.Context(), batch[2]); err != nil || !claim.KeyTaken {
		t.Errorf("Claim = %+v, %v; want the key in use", claim, err)
	}
	var rows int
	if err := p.Pool.Get(&rows, `select count(*) from commands`); err != nil || rows != 5 {
		t.Errorf("%d commands, %v; want 5", rows, err)
	}
}

// Commands go on while all vehicles of a large fleet change by an import, and their units, too.
func TestCommands_GoOnDuringAnImport(t *testing.T) {
	const fleet = 3000
	p := openWith(t, pg.Config{URL: storetest.NewDatabase(t)})
	file := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}}}
	for id := range telematics.VehicleID(fleet) {
		file.Vehicles = append(file.Vehicles, telematics.Vehicle{
			ID: id + 1, AgencyID: 1, Unit: telematics.Unit(fmt.Sprint("unit-", id+1)), Status: telematics.Available,
			Powertrain: telematics.Electric,
		})
	}
	if got, err := p.Import(t.Context(), file); err != nil || got.Vehicles != fleet || got.Units != fleet {
		t.Fatalf("Import = %+v, %v", got, err)
	}
	others, err := p.WithoutTimeouts(t.Context(), 0)
	require.NoError(t, err)
	defer others.Close()
	operator := others.MustBegin()
	defer operator.Rollback() //nolint:errcheck // at the end of the test
	operator.MustExec(`select from vehicles where id = 1500 for update`)
	for i := range file.Vehicles {
		v := &file.Vehicles[i]
		v.Color, v.Unit = "pink", telematics.Unit(fmt.Sprint("unit-", fleet-i))
	}
	imported := make(chan error, 1)
	go func() {
		got, err := p.Import(t.Context(), file)
		if err == nil && (got.Vehicles != fleet || got.Units != fleet) {
			err = fmt.Errorf("imported %+v", got)
		}
		imported <- err
	}()
	var commands sync.WaitGroup
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		commands.Go(func() {
			// Not the locked one.
			c := brokertest.NewCommand(telematics.VehicleID(1+n*7919%1499), telematics.Lock)
			if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() && claim.Occupant == nil {
				t.Errorf("Claim = %+v, %v", claim, err)
			}
			if _, _, err := p.Settle(t.Context(), succeeded(c)); err != nil {
				t.Errorf("Settle: %v", err)
			}
		})
		if n == 200 {
			_ = operator.Rollback()
		}
		select {
		case err := <-imported:
			if commands.Wait(); err != nil || n < 200 {
				t.Errorf("Import after %d commands: %v; want it to wait for the locked vehicle", n, err)
			}
			return
		case <-tick.C:
		}
	}
}
