package commands

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// A settlement whose wait for the synchronous standby was cancelled is visible, and lost with the
// primary: neither the waiter that polls nor a caller that repeats its key gets it.
func TestDurable_NoCallerGetsASettlementThatOnlyThePrimaryHas(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PostgresServer)
	primary := storetest.StartPostgres(t, false)
	standby, err := primary.StartStandby(t.Context(), devstack.StandbyConfig{Dir: filepath.Join(primary.Dir, "standby"), Synchronous: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = standby.Discard() })
	admin := sqlx.MustConnect("postgres", primary.Database(storetest.Template))
	defer admin.Close()
	p := open(t, primary.Database(storetest.Template))
	vehicle, _ := storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = brokertest.NewKey()
	_, err = p.Claim(t.Context(), c)
	require.NoError(t, err)
	updates := func() error {
		found, err := p.Updates(t.Context(), []telematics.CommandID{c.ID}, nil)
		if err == nil && (len(found) != 1 || found[0].State != telematics.Succeeded) {
			t.Errorf("updates %+v, want the command, succeeded", found)
		}
		return err
	}
	byKey := func() error {
		_, _, err := p.FindByKey(t.Context(), *c.Key)
		return err
	}
	settle := func() error {
		_, _, err := p.Settle(t.Context(), delivery.Settlement{Command: c.ID, Unit: c.Unit, State: telematics.Succeeded, At: time.Now()})
		return err
	}
	require.NoError(t, standby.Kill())
	for _, test := range []struct {
		name string
		call func() error
	}{{"Settle", settle}, {"Updates", updates}, {"FindByKey", byKey}} {
		done := make(chan error, 1)
		go func() { done <- test.call() }()
		var cancelled []bool
		storetest.Eventually(t, test.name+" waits for the standby", func() bool {
			if len(done) > 0 {
				t.Fatalf("%s = %v, without waiting for the standby", test.name, <-done)
			}
			err := admin.SelectContext(
				context.Background(), &cancelled,
				`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
			)
			return err == nil && len(cancelled) == 1
		})
		if err := <-done; !errors.Is(err, pg.ErrNotReplicated) {
			t.Errorf("%s = %v, want ErrNotReplicated", test.name, err)
		}
	}
	admin.MustExec(`alter system set synchronous_standby_names = ''`)
	admin.MustExec(`select pg_reload_conf()`)
	for _, call := range []func() error{updates, byKey} {
		storetest.Eventually(t, "the settlement is read once the standby is given up", func() bool { return call() == nil })
	}
}
