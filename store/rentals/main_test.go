package rentals

import (
	"context"
	"sync"
	"testing"
	"time"

	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture has the commercial side with the connections of an instance, the fleet and the audit log.
type fixture struct {
	*pg.DB
	*vehicles.Fleet
	owner func() *pg.DB // opens connections with the rights of the owner of the tables
	*activity.Log
	Bookings
	Charges
	Cards
	Notices
}

func newFixture(tb testing.TB, config pg.Config) *fixture {
	tb.Helper()
	db, owner := storetest.OpenWith(tb, config), sync.OnceValue(func() *pg.DB { return storetest.OpenAs(tb, config) })
	return &fixture{db, vehicles.New(db), owner, activity.New(db), Bookings{db}, Charges{db}, Cards{db}, Notices{db}}
}

// Import imports as the owner of the tables, as motorpool import does.
func (f *fixture) Import(ctx context.Context, file vehicles.FleetFile) (vehicles.Imported, error) {
	return vehicles.New(f.owner()).Import(ctx, file)
}

// open connects an instance of Motorpool to a database.
func open(tb testing.TB, address string) *fixture {
	tb.Helper()
	return newFixture(tb, pg.Config{URL: address, MaxConns: 8, Timeout: 10 * time.Second})
}

// openPatient connects an instance that waits long enough for a lock that many callers want.
func openPatient(tb testing.TB, address string) *fixture {
	tb.Helper()
	return newFixture(tb, pg.Config{URL: address, MaxConns: 20, Timeout: time.Minute})
}
