package commands

import (
	"fmt"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// During an upgrade, an instance of the previous version settles commands without knowledge of
// their keys.
func TestKey_IsFreedByARejectionOfThePreviousVersion(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.Vehicles(t, p.DB)()
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	storetest.Exec(t, p.Pool, `update commands set state = 'rejected', completed_at = now() where id = $1`, c.ID)
	if made, found, err := p.FindByKey(t.Context(), *c.Key); found || err != nil {
		t.Fatalf("the key is found with a command that is %s, want it freed (%v)", made.Command.State, err)
	}
	again := brokertest.NewCommand(vehicle, telematics.Lock)
	again.Key = c.Key
	if claim, err := p.Claim(t.Context(), again); err != nil || !claim.Taken() {
		t.Errorf("Claim with the freed key = %+v, %v; want it taken", claim, err)
	}
}

// FindByKey would free the key, too, so the test reads the table itself.
func TestSettle_FreesTheKeyOfACommandThatWasNotExecuted(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	next := storetest.Vehicles(t, p.DB)
	states := []telematics.State{telematics.Rejected, telematics.Expired, telematics.Failed, telematics.Unknown, telematics.Succeeded}
	for _, known := range []bool{true, false} {
		for name, batches := range map[string][][]telematics.State{
			"one by one": {states[:1], states[1:2], states[2:3], states[3:4], states[4:]}, "together": {states},
		} {
			t.Run(fmt.Sprintf("%s, command given: %v", name, known), func(t *testing.T) {
				for _, batch := range batches {
					var settlements []*delivery.Settlement
					for _, state := range batch {
						s := settlementOfKeyed(t, p, next, state, known)
						settlements = append(settlements, &s)
					}
					results, err := p.settle(t.Context(), settlements)
					require.NoError(t, err)
					for i, s := range settlements {
						var kept bool
						require.NoError(t, p.Pool.Get(&kept, `select exists (select from idempotency_keys where command_id = $1)`,
							s.Command))
						if want := s.State.Outcome() != telematics.NotExecuted; results[i] == nil || kept != want {
							t.Errorf("%s: settled: %v; key kept: %v, want %v", s.State, results[i] != nil, kept, want)
						}
					}
				}
			})
		}
	}
}

// settlementOfKeyed is the settlement of a new command that has a key.
func settlementOfKeyed(
	t *testing.T, p *instance, next func() (telematics.VehicleID, telematics.Unit), state telematics.State, known bool,
) delivery.Settlement {
	t.Helper()
	vehicle, _ := next()
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	s := delivery.Settlement{Command: c.ID, State: state, At: time.Now()}
	if known {
		s.Known = &c
	}
	return s
}
