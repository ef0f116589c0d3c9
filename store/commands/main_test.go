package commands

import (
	"context"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// instance is what an instance of Motorpool uses in Postgres.
type instance struct {
	*pg.DB
	*activity.Log
	*vehicles.Fleet
	*Store
	HaltStore
	Numbers
}

// Claim claims a command, which it does not change.
func (p *instance) Claim(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
	return p.Store.Claim(ctx, &c)
}

// noCache is the cache of a store without cached records.
type noCache struct{}

func (noCache) Confirm(telematics.VehicleID, int64) {}
func (noCache) Forget(telematics.VehicleID)         {}

// mustClaim claims what must be free.
func (p *instance) mustClaim(t testing.TB, c telematics.Command) {
	t.Helper()
	if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
}

// open connects an instance of Motorpool to a database.
func open(tb testing.TB, address string) *instance {
	tb.Helper()
	return openWith(tb, pg.Config{URL: address, MaxConns: 8, Timeout: 10 * time.Second})
}

func openWith(tb testing.TB, config pg.Config) *instance {
	tb.Helper()
	db, err := pg.New(config)
	require.NoError(tb, err)
	p := &instance{db, activity.New(db), vehicles.New(db), New(db, noCache{}), HaltStore{db}, Numbers{db}}
	tb.Cleanup(func() { require.NoError(tb, p.Close()) })
	return p
}
