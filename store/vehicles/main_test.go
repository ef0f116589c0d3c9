package vehicles

import (
	"context"
	"testing"
	"time"

	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var morning = time.Date(2026, 1, 2, 10, 0, 0, 123456000, time.UTC)

// fixture is a fleet with the database connections of an instance.
type fixture struct {
	*pg.DB
	*Fleet
	owner *Fleet
}

func open(tb testing.TB, address string) *fixture {
	tb.Helper()
	db := storetest.Open(tb, address)
	return &fixture{db, New(db), New(storetest.OpenAsOwner(tb, address))}
}

// Import imports as the owner of the tables, as motorpool import does.
func (f *fixture) Import(ctx context.Context, file FleetFile) (Imported, error) {
	return f.owner.Import(ctx, file)
}

// Apply applies a plan as the owner of the tables.
func (f *fixture) Apply(ctx context.Context, plan FleetPlan, by telematics.Author) (Imported, error) {
	return f.owner.Apply(ctx, plan, by)
}
