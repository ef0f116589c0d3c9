package redis

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// pendings returns entries of different units, none of them in the table.
func pendings(n int) []delivery.Pending {
	entries := make([]delivery.Pending, n)
	for i := range entries {
		entries[i] = pendingIn(telematics.Unit(fmt.Sprintf("unit-%d", i)), 10*time.Second)
	}
	return entries
}

// BenchmarkPendingTable measures the table in a Redis that has only the pending commands.
func BenchmarkPendingTable(b *testing.B) {
	r := openTable(b, storetest.StartRedis(b).URL())
	register := func(p delivery.Pending) error { return r.Register(p)(b.Context()) }
	lookup := func(p delivery.Pending) error {
		_, ok, err := r.Lookup(b.Context(), p.Unit, p.Command)
		if err == nil && !ok {
			err = errors.New("not found")
		}
		return err
	}
	release := func(p delivery.Pending) error { return r.Release(b.Context(), p) }
	absent := func(n int) []delivery.Pending {
		if err := r.db.Client.FlushAll(b.Context()).Err(); err != nil {
			b.Fatal(err)
		}
		return pendings(n)
	}
	present := func(n int) []delivery.Pending {
		entries := absent(n)
		for _, p := range entries {
			if err := register(p); err != nil {
				b.Fatal(err)
			}
		}
		return entries
	}
	for _, c := range []struct {
		name  string
		fresh func(int) []delivery.Pending
		call  func(delivery.Pending) error
	}{
		{"register", absent, register},
		{"lookup", present, lookup},
		{"release", present, release},
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/callers=%d", c.name, callers), func(b *testing.B) { storetest.Call(b, callers, c.fresh, c.call) })
		}
	}
	// The lower limit of the others: one exchange with this Redis.
	b.Run("ping/callers=1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := r.db.Client.Ping(b.Context()).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
