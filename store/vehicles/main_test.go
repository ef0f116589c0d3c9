package vehicles

import (
	"testing"
	"time"

	"motorpool/store/pg"
	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var morning = time.Date(2026, 1, 2, 10, 0, 0, 123456000, time.UTC)

// fixture is a fleet with its database connections.
type fixture struct {
	*pg.DB
	*Fleet
}

func open(tb testing.TB, address string) *fixture {
	tb.Helper()
	db := storetest.Open(tb, address)
	return &fixture{db, New(db)}
}
