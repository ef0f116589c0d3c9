package redis

import (
	"testing"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/store/storetest"
)

var _ broker.PendingTable = (*PendingTable)(nil)

func TestMain(m *testing.M) { storetest.Main(m) }

func open(t testing.TB, address string) *DB {
	t.Helper()
	db, err := New(Config{URL: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func openTable(t testing.TB, address string) *PendingTable {
	t.Helper()
	return NewPendingTable(open(t, address))
}

func miniredis(t *testing.T) string { return storetest.StartMiniredis(t).URL() }

func TestPendingTable_KeepsItsContract(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			here, there := openTable(t, address), openTable(t, address)
			brokertest.PendingTableContract(t, func(t *testing.T) brokertest.PendingTables {
				flush := func() { require.NoError(t, here.db.Client.FlushDB(t.Context()).Err()) }
				flush()
				return brokertest.PendingTables{Here: here, There: there, Flush: flush}
			})
		})
	}
}
