package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/store/commands"
	"motorpool/store/storetest"
)

// After a failover, numbers that were lost must not be given again, whatever else fails.
func TestDatabaseWatch_RaisesTheNumbersWhereOtherStepsFail(t *testing.T) {
	address := storetest.NewDatabase(t)
	db := storetest.Open(t, address)
	storetest.Exec(t, db.Pool, `drop function observe_clock; alter table processor_notices rename to elsewhere`)
	w := &databaseWatch{
		service: &service{postgres: db, log: slog.New(slog.DiscardHandler)}, gauges: newDatabaseGauges(prometheus.NewRegistry()),
	}
	if err := w.check(t.Context()); err == nil || !strings.Contains(err.Error(), "note postgres's clock") ||
		!strings.Contains(err.Error(), "correct when charges are due") {
		t.Errorf("check = %v, want both failures", err)
	}
	// As the owner does, whose command shows the numbers.
	if n, err := (commands.Numbers{DB: storetest.OpenAsOwner(t, address)}).Read(t.Context()); err != nil || !n.Current {
		t.Errorf("Read = %+v, %v; want the numbers raised", n, err)
	}
}
