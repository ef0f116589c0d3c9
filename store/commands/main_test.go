package commands

import (
	"context"
	"sync"
	"testing"
	"time"

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
	owner func() *pg.DB // opens connections with the rights of the owner of the tables
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
	return newInstance(storetest.OpenWith(tb, config), sync.OnceValue(func() *pg.DB { return storetest.OpenAs(tb, config) }))
}

// openAsOwner connects the role that an address names: mostly the owner of the tables.
func openAsOwner(tb testing.TB, address string) *instance {
	tb.Helper()
	db := storetest.OpenAsOwner(tb, address)
	return newInstance(db, func() *pg.DB { return db })
}

func newInstance(db *pg.DB, owner func() *pg.DB) *instance {
	return &instance{db, activity.New(db), vehicles.New(db), New(db, noCache{}), HaltStore{db}, Numbers{db}, owner}
}

// Import imports as the owner of the tables, as motorpool import does.
func (p *instance) Import(ctx context.Context, file vehicles.FleetFile) (vehicles.Imported, error) {
	return vehicles.New(p.owner()).Import(ctx, file)
}
