package delivery

import (
	"testing"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestSettlement_HasTheCodeOfItsError(t *testing.T) {
	for _, test := range []struct {
		Settlement
		want telematics.Code
	}{
		{Settlement{State: telematics.Succeeded}, ""},
		{Settlement{State: telematics.Rejected, Reason: telematics.StateConflict}, telematics.VehicleStateConflict},
		{Settlement{State: telematics.Rejected, Reason: telematics.TooLate}, telematics.CommandRejected},
		{Settlement{State: telematics.Failed, Reason: telematics.Interrupted}, telematics.CommandFailed},
		{Settlement{State: telematics.Expired}, telematics.TelematicsUnavailable},
		{Settlement{State: telematics.Unknown}, telematics.CommandTimeout},
	} {
		assert.Equal(t, test.Code(), test.want, "%s %s: code", test.State, test.Reason)
	}
}
