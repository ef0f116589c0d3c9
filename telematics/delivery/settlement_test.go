package delivery

import (
	"testing"

	"motorpool/telematics"
)

func TestASettlementHasTheCodeOfItsError(t *testing.T) {
	for s, want := range map[Settlement]telematics.Code{
		{State: telematics.Succeeded}:                                  "",
		{State: telematics.Rejected, Reason: telematics.StateConflict}: telematics.VehicleStateConflict,
		{State: telematics.Rejected, Reason: telematics.TooLate}:       telematics.CommandRejected,
		{State: telematics.Failed, Reason: telematics.Interrupted}:     telematics.CommandFailed,
		{State: telematics.Expired}:                                    telematics.TelematicsUnavailable,
		{State: telematics.Unknown}:                                    telematics.CommandTimeout,
	} {
		if got := s.Code(); got != want {
			t.Errorf("%s %s: %q, want %q", s.State, s.Reason, got, want)
		}
	}
}
