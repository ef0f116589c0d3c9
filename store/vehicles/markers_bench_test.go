package vehicles

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// BenchmarkMarkers measures the read of the map markers of 100,000 vehicles, without encoding. Its
// CPU time is only that of Postgres, which works while this process decodes.
func BenchmarkMarkers(b *testing.B) {
	db, err := pg.New(pg.Config{URL: storetest.NewDatabase(b), MaxConns: 8, Timeout: time.Minute})
	require.NoError(b, err)
	defer db.Close()
	p := &fixture{db, New(db)}
	fillFleet(b, p, 100_000, time.Now())
	p.Lists.SetMaxOpenConns(1)
	var backend int
	require.NoError(b, p.Lists.Get(&backend, `select pg_backend_pid()`))
	read := func() {
		n := 0
		if err := p.Markers(b.Context(), telematics.MarkerQuery{}, func(telematics.Marker) error { n++; return nil }); err != nil ||
			n != 100_000 {
			b.Fatal(n, err)
		}
	}
	read() // the first read sets the visibility hints in the pages
	began := cpuTime(b, backend)
	for b.Loop() {
		read()
	}
	b.ReportMetric(float64((cpuTime(b, backend)-began).Milliseconds())/float64(b.N), "postgres-cpu-ms/op")
}

// cpuTime returns the CPU time that a process has used.
func cpuTime(b *testing.B, process int) time.Duration {
	b.Helper()
	const userTicks, tick = 13, 10 * time.Millisecond
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < userTicks+2 {
		b.Fatal(err, string(text))
	}
	var user, system time.Duration
	if _, err := fmt.Sscan(fields[userTicks]+" "+fields[userTicks+1], &user, &system); err != nil {
		b.Fatal(err)
	}
	return (user + system) * tick
}
