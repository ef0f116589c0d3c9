package signing

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/wiretest"
)

// goldenFloor are the commands of the vectors for the time floor [CMD-9], named for when they were
// ordered. Package simulator runs them.
var goldenFloor = map[string]telematics.Claims{
	"command-floor-0.jws":   orderedAfter(0, telematics.Lock, 46, "7d0f3a1e-0c44-4b9b-8f2e-6a5d1c7e9046"),
	"command-floor-5.jws":   orderedAfter(5*time.Second, telematics.Unlock, 45, "7d0f3a1e-0c44-4b9b-8f2e-6a5d1c7e9045"),
	"command-floor-30.jws":  orderedAfter(30*time.Second, telematics.Unlock, 48, "7d0f3a1e-0c44-4b9b-8f2e-6a5d1c7e9048"),
	"command-floor-250.jws": orderedAfter(250*time.Second, telematics.Lock, 47, "7d0f3a1e-0c44-4b9b-8f2e-6a5d1c7e9047"),
}

func orderedAfter(after time.Duration, action telematics.Action, seq int64, id string) telematics.Claims {
	at := now.Add(after)
	return telematics.Claims{
		Command: uuid.MustParse(id), Unit: goldenUnit, Action: action, Lane: telematics.AccessLane, Seq: seq,
		IssuedAt: at, Expires: at.Add(10 * time.Second),
	}
}

func TestGoldenFloor_IsSignedAndVerifiedByteForByte(t *testing.T) {
	keys, ring := goldenKeys(t)
	for file, claims := range goldenFloor {
		signed, err := keys[0].Sign(claims)
		require.NoError(t, err)
		message := wiretest.Golden(t, file, signed)
		if got, err := ring.Verify(message); err != nil || !reflect.DeepEqual(got, claims) {
			t.Errorf("%s: verified as %+v, %v", file, got, err)
		}
	}
}
