package store

import (
	"testing"
	"time"

	"motorpool/store/pg"
	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// open connects an instance of Motorpool to a database.
func open(tb testing.TB, address string) *Postgres {
	tb.Helper()
	return openWith(tb, pg.Config{URL: address, MaxConns: 8, Timeout: 10 * time.Second})
}

func openWith(tb testing.TB, config pg.Config) *Postgres {
	tb.Helper()
	p, err := New(config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}
