package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

func newKey(t *testing.T) signing.Key {
	t.Helper()
	key, err := signing.NewKey()
	require.NoError(t, err)
	return key
}

func signed(t *testing.T, key signing.Key) []byte {
	t.Helper()
	now := time.Now()
	message, err := key.Sign(telematics.Claims{
		Command: uuid.New(), Unit: "car-1", Action: telematics.Lock, Lane: telematics.AccessLane, Seq: 1, IssuedAt: now,
		Expires: now.Add(time.Second),
	})
	require.NoError(t, err)
	return message
}

func TestFleetKeys_AcceptMessagesOfFormerKeys(t *testing.T) {
	first, second, foreign := newKey(t), newKey(t), newKey(t)
	keys := newFleetKeys(first)
	keys.add(second.Keyring())
	keys.activate(second.ID)
	for _, key := range []signing.Key{first, second} {
		if _, err := keys.verify(signed(t, key)); err != nil {
			t.Error(err)
		}
	}
	if _, err := keys.verify(signed(t, foreign)); err == nil {
		t.Error("a message with a foreign key was accepted")
	}
	if keys.signing() != second.ID {
		t.Error("the first key is still the signing key")
	}
}

func TestFleetKeys_KeyIsIdleAMinuteAfterTheLastInstanceSwitched(t *testing.T) {
	first, second := newKey(t), newKey(t)
	synctest.Test(t, func(t *testing.T) {
		keys := newFleetKeys(first)
		keys.activate(second.ID)
		time.Sleep(signing.RetireAfter)
		if idle := keys.idle(); len(idle) > 0 {
			t.Errorf("idle keys within a minute: %v, want none", idle)
		}
		time.Sleep(time.Millisecond)
		assert.EqualSlices(t, keys.idle(), []string{first.ID}, "idle keys after a minute")
		if idle := keys.idle(); len(idle) > 0 {
			t.Errorf("idle keys the second time: %v, want none", idle)
		}
	})
}

func TestKeyOf_ReadsTheKeyID(t *testing.T) {
	key := newKey(t)
	assert.Equal(t, keyOf(signed(t, key)), key.ID, "key id")
	for _, other := range []string{"", "no message", "e30.e30.", "%.%.%"} {
		assert.Equal(t, keyOf([]byte(other)), "", "keyOf(%q)", other)
	}
}
