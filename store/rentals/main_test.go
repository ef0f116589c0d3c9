package rentals

import (
	"testing"
	"time"

	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fixture has the commercial side with the connections of its database, the fleet and the audit
// log.
type fixture struct {
	*pg.DB
	*vehicles.Fleet
	*activity.Log
	Bookings
	Charges
	Cards
	Notices
}

func newFixture(db *pg.DB) *fixture {
	return &fixture{db, vehicles.New(db), activity.New(db), Bookings{db}, Charges{db}, Cards{db}, Notices{db}}
}

// open connects an instance of Motorpool to a database.
func open(tb testing.TB, address string) *fixture {
	tb.Helper()
	return newFixture(storetest.Open(tb, address))
}

// openPatient connects an instance that waits long enough for a lock that many callers want.
func openPatient(tb testing.TB, address string) *fixture {
	tb.Helper()
	return newFixture(storetest.OpenWith(tb, pg.Config{URL: address, MaxConns: 20, Timeout: time.Minute}))
}
