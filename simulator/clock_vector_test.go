package simulator

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// These are the vectors for the time floor of telematics/testdata/wire/README.md. [CMD-9]
func TestFloor_Vectors(t *testing.T) {
	const notValid = -1
	type step struct {
		timer   int // seconds since the first message, by a timer that is never set
		clock   int // the unit's clock: seconds after 1767348000; notValid
		command string
		reason  string // of the refusal; empty: executed
		restart bool   // restart directly before
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"not learned from a command refused as clock_behind", []step{
			{0, 0, "250", telematics.ClockBehind, false}, {6, 6, "5", "", false},
		}},
		{"just before the expiry by the floor", []step{{0, 0, "5", "", false}, {4, 4, "0", "", false}}},
		{"expired by the floor", []step{{0, 0, "5", "", false}, {5, 5, "0", telematics.TooLate, false}}},
		{"set back, delayed command", []step{{0, 0, "5", "", false}, {32, 2, "0", telematics.TooLate, false}}},
		{"set back, prompt command", []step{{0, 0, "5", "", false}, {31, 1, "30", "", false}}},
		{"floor still valid", []step{{0, 0, "5", "", false}, {299, 219, "250", telematics.TooLate, false}}},
		{"floor expired", []step{{0, 0, "5", "", false}, {300, 220, "250", telematics.ClockBehind, false}}},
		{"no floor after a restart", []step{{0, 0, "5", "", false}, {32, 2, "0", "", true}}},
		{"not learned without a valid clock", []step{{0, notValid, "5", telematics.ClockUnset, false}, {9, 9, "0", "", false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			ring, err := signing.ParseKeyring(golden(t, "keyring.jwks"))
			require.NoError(t, err)
			b.keys = ring
			for i, s := range c.steps {
				b.now = epoch.Add(time.Duration(s.timer) * time.Second)
				b.clock = Clock{Skew: time.Duration(s.clock-s.timer) * time.Second, Unset: s.clock == notValid}
				if s.restart {
					b.boot()
				}
				state := telematics.Succeeded
				if s.reason != "" {
					state = telematics.Rejected
				}
				said := append(b.deliver(golden(t, "wire/command-floor-"+s.command+".jws")), b.pass(500*time.Millisecond)...)
				if len(said) == 0 {
					t.Fatalf("message %d got no answer", i+1)
				}
				says(t, said[len(said)-1], state, s.reason, "")
			}
		})
	}
}
