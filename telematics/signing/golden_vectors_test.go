package signing

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/wiretest"
)

// vectorID returns the jti of a test vector. Each vector has another, so that a unit can run them
// without a restart.
func vectorID(n byte) telematics.CommandID {
	id := aCommand
	id[len(id)-1] = n
	return id
}

const (
	vectorAttention = iota + 1
	vectorTooLong
	vectorAlgNone
	vectorHS256
	vectorCritical
	vectorAnotherType
	vectorOldSeq
	vectorTopCase
	vectorShortPulse
	vectorLongPulse
	vectorPulseTooLong
	vectorNoPulse
	vectorUnknownSignal
	vectorNoParams
	vectorWrongLane
	vectorArmed
	vectorHalfHandover
	vectorHalfReturn
	vectorInterrupted
	vectorParamsOfLock
	vectorNulls
)

// vector returns the claims of a test vector. It is valid for 30 s, so that a unit has time for all
// of them.
func vector(id byte, action telematics.Action, seq int64) telematics.Claims {
	return telematics.Claims{
		Command: vectorID(id), Unit: goldenUnit, Action: action, Lane: action.Lane(), Seq: seq,
		IssuedAt: now, Expires: now.Add(30 * time.Second),
	}
}

func attentionVector(id byte, seq int64, signal telematics.Signal, pulse time.Duration) telematics.Claims {
	c := vector(id, telematics.AttentionSignal, seq)
	c.Attention = &telematics.Attention{Signal: signal, Duration: pulse}
	return c
}

// writtenVectors are the vectors that the service could write, by file.
func writtenVectors() map[string]telematics.Claims {
	wrongLane := vector(vectorWrongLane, telematics.Lock, 57)
	wrongLane.Lane = telematics.TopCaseLane
	return map[string]telematics.Claims{
		"command-lock.jws":           goldenLock,
		"command-too-long.jws":       goldenTooLong,
		"command-old-seq.jws":        vector(vectorOldSeq, telematics.Unlock, 41),
		"command-top-case.jws":       vector(vectorTopCase, telematics.OpenTopCase, 7),
		"command-short-pulse.jws":    attentionVector(vectorShortPulse, 50, telematics.Horn, time.Millisecond),
		"command-long-pulse.jws":     attentionVector(vectorLongPulse, 51, telematics.Lights, telematics.MaxPulse),
		"command-pulse-too-long.jws": attentionVector(vectorPulseTooLong, 52, telematics.Horn, telematics.MaxPulse+time.Millisecond),
		"command-no-pulse.jws":       attentionVector(vectorNoPulse, 53, telematics.Horn, 0),
		"command-unknown-signal.jws": attentionVector(vectorUnknownSignal, 54, "siren", time.Second),
		"command-no-params.jws":      vector(vectorNoParams, telematics.AttentionSignal, 55),
		"command-wrong-lane.jws":     wrongLane,
		"command-armed.jws":          vector(vectorArmed, telematics.DisableDriving, 59),
		"command-half-handover.jws":  vector(vectorHalfHandover, telematics.UnlockAndEnableDriving, 60),
		"command-half-return.jws":    vector(vectorHalfReturn, telematics.LockAndDisableDriving, 61),
		"command-interrupted.jws":    vector(vectorInterrupted, telematics.Unlock, 62),
		// Of the vectors for the time floor [CMD-9], named for when they were ordered.
		"command-floor-0.jws":   orderedAfter(0, telematics.Lock, 46),
		"command-floor-5.jws":   orderedAfter(5*time.Second, telematics.Unlock, 45),
		"command-floor-30.jws":  orderedAfter(30*time.Second, telematics.Unlock, 48),
		"command-floor-250.jws": orderedAfter(250*time.Second, telematics.Lock, 47),
	}
}

func orderedAfter(after time.Duration, action telematics.Action, seq int64) telematics.Claims {
	at := now.Add(after)
	return telematics.Claims{
		Command: uuid.MustParse(fmt.Sprintf("7d0f3a1e-0c44-4b9b-8f2e-6a5d1c7e90%d", seq)), Unit: goldenUnit, Action: action,
		Lane: telematics.AccessLane, Seq: seq, IssuedAt: at, Expires: at.Add(10 * time.Second),
	}
}

// Claims of the vectors with empty and null members.
func paramsOfLock() telematics.Claims {
	c := vector(vectorParamsOfLock, telematics.Lock, 56)
	c.Attention, c.Trace = &telematics.Attention{}, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	return c
}

func nulls() telematics.Claims { return vector(vectorNulls, telematics.Lock, 58) }

// goldenSigned lists the claims of all correctly signed golden messages.
func goldenSigned() []telematics.Claims {
	return append(slices.Collect(maps.Values(writtenVectors())), goldenAttention, paramsOfLock(), nulls())
}

func TestGoldenVectors_AreSignedAndVerifiedByteForByte(t *testing.T) {
	keys, ring := goldenKeys(t)
	check := func(key Key, file string, claims telematics.Claims) {
		signed, err := key.Sign(claims)
		require.NoError(t, err)
		if got, err := ring.Verify(wiretest.Golden(t, file, signed)); err != nil || !reflect.DeepEqual(got, claims) {
			t.Errorf("%s: verified as %+v, %v", file, got, err)
		}
	}
	check(keys[1], "command-attention.jws", goldenAttention)
	for file, claims := range writtenVectors() {
		check(keys[0], file, claims)
	}
}

// Correctly signed claims in an encoding that the service does not use.
func TestGolden_VectorsWithEmptyAndNullMembers(t *testing.T) {
	keys, ring := goldenKeys(t)
	signed := func(id byte, seq int, params, trace string) []byte {
		return signedRaw(keys[0], `{"alg":"EdDSA","kid":"fleet-1","typ":"motorpool-command+jwt"}`, fmt.Sprintf(
			`{"iss":"motorpool","aud":"%s","jti":"%s","iat":%d,"exp":%d,"cmd":"lock","params":%s,"lane":"access","seq":%d,"tp":%s}`,
			goldenUnit, vectorID(id), now.Unix(), now.Unix()+30, params, seq, trace))
	}
	for file, c := range map[string]struct {
		message []byte
		claims  telematics.Claims
	}{
		"command-params-of-lock.jws": {signed(vectorParamsOfLock, 56, `{}`, `"`+paramsOfLock().Trace+`"`), paramsOfLock()},
		"command-nulls.jws":          {signed(vectorNulls, 58, `null`, `null`), nulls()},
	} {
		if got, err := ring.Verify(wiretest.Golden(t, file, c.message)); err != nil || !reflect.DeepEqual(got, c.claims) {
			t.Errorf("%s: verified as %+v, %v", file, got, err)
		}
	}
}

// [CMD-5] A unit would answer a message with the same jti as the earlier one.
func TestGoldenCommands_IDsAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, file := range goldenCommands(t) {
		id := goldenID(t, file)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have the same jti", file, other)
		}
		seen[id] = file
	}
}
