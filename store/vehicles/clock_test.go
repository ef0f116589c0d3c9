package vehicles

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestCorrectTimes_PresenceOfAClockFarAheadIsReplaced(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	ahead, _ := add()
	right, _ := add()
	exec := func(query string, args ...any) {
		t.Helper()
		storetest.Exec(t, p.Pool, query, args...)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	dated := func(vehicle telematics.VehicleID, at time.Time) {
		t.Helper()
		exec(
			`update units set status = 'online', session = 'session-of-then', said_at = $1, changed_at = $1, last_seen = $1
				where vehicle_id = $2`,
			at, int64(vehicle),
		)
	}
	dated(ahead, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	dated(right, now)
	contact := func(vehicle telematics.VehicleID) telematics.Contact {
		t.Helper()
		twin, err := p.Record(t.Context(), vehicle)
		require.NoError(t, err)
		return twin.Contact
	}
	present := telematics.Presence{Status: telematics.Online, Session: "session-of-now", At: now.Add(time.Second)}
	for _, step := range []struct {
		clock     string
		corrected int
		counts    bool
	}{
		{`steady_since = now()`, 0, false}, // it has just gone back
		{`steady_since = now() - interval '7 hours'`, 1, true},
		{`steady_since = now() - interval '7 hours'`, 0, true},
	} {
		exec(`update observed_clock set observed_at = now(), ` + step.clock)
		if n, err := CorrectTimes(t.Context(), p.DB); err != nil || n != step.corrected {
			t.Errorf("%s: corrected %d, %v; want %d", step.clock, n, err, step.corrected)
		}
		if _, counts := contact(ahead).Apply(present, now.Add(time.Second), false); counts != step.counts {
			t.Errorf("%s: presence of now counts %t, want %t", step.clock, counts, step.counts)
		}
		if seen := contact(ahead).LastSeen; step.counts && seen.After(time.Now().Add(time.Minute)) {
			t.Errorf("last seen at %v, want now at the latest", seen)
		}
		if c := contact(right); !c.SaidAt.Equal(now) || !c.LastSeen.Equal(now) || !c.ChangedAt.Equal(now) {
			t.Errorf("%s: a contact of a right clock has become %+v", step.clock, c)
		}
	}
}
