package brokertest

import (
	"crypto/sha256"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// NewKey returns an unused idempotency key.
func NewKey() *telematics.IdempotencyKey {
	return &telematics.IdempotencyKey{Agency: 1, Subject: "admin-7", Key: uuid.NewString(), Fingerprint: sha256.Sum256([]byte("lock"))}
}

// keyed returns a command that is ordered with a key.
func (r CommandRecord) keyed(k *telematics.IdempotencyKey) telematics.Command {
	c := NewCommand(r.Vehicle(), telematics.Lock)
	c.Requested = time.Now().UTC().Truncate(time.Millisecond)
	c.Deadline = c.Requested.Add(10 * time.Second)
	c.Key = k
	return c
}

func (r CommandRecord) findByKey(t *testing.T, k *telematics.IdempotencyKey) (delivery.KeyResult, bool) {
	t.Helper()
	made, found, err := r.There.FindByKey(t.Context(), *k)
	require.NoError(t, err, "FindByKey")
	return made, found
}

func keyNamesItsCommand(t *testing.T, r CommandRecord) {
	k := NewKey()
	if _, found := r.findByKey(t, k); found {
		t.Fatal("FindByKey found a command for a new key")
	}
	c := r.claim(t, r.keyed(k))
	made, found := r.findByKey(t, k)
	if !found || made.Command.ID != c.ID || made.Command.State != telematics.Accepted || made.Fingerprint != k.Fingerprint {
		t.Errorf("FindByKey = %+v, %v", made, found)
	}
	r.settle(t, settlement(c, telematics.Unknown))
	if made, found := r.findByKey(t, k); !found || made.Command.State != telematics.Unknown {
		t.Errorf("after unknown: FindByKey = %+v, %v; want the present state", made, found)
	}
	r.settle(t, settlement(c, telematics.Succeeded))
	if made, found := r.findByKey(t, k); !found || made.Command.State != telematics.Succeeded {
		t.Errorf("after a late success: FindByKey = %+v, %v; want the present state", made, found)
	}
}

func keyMakesOneCommand(t *testing.T, r CommandRecord) {
	k := NewKey()
	first := r.claim(t, r.keyed(k))
	// By a driver that retries a claim whose reply was lost.
	if claim, err := r.Here.Claim(t.Context(), &first); err != nil || claim.Occupant == nil || claim.Occupant.ID != first.ID {
		t.Errorf("Claim of the same command = %+v, %v; want it as its own occupant", claim, err)
	}
	for range 2 {
		claim, err := r.There.Claim(t.Context(), ref(r.keyed(k))) // for another vehicle
		if err != nil || !claim.KeyTaken || claim.Taken() {
			t.Fatalf("Claim = %+v, %v; want KeyTaken", claim, err)
		}
	}
	if made, _ := r.findByKey(t, k); made.Command.ID != first.ID {
		t.Errorf("FindByKey = %s, want the first command", made.Command.ID)
	}
}

func keyOfAnotherCallerIsAnotherKey(t *testing.T, r CommandRecord) {
	k := NewKey()
	r.claim(t, r.keyed(k))
	for _, other := range []telematics.IdempotencyKey{
		{Agency: 2, Subject: k.Subject, Key: k.Key}, {Agency: k.Agency, Subject: "admin-8", Key: k.Key},
		{Agency: k.Agency, Subject: k.Subject, Key: k.Key + "x"}, {Subject: k.Subject, Key: k.Key},
	} {
		if made, found := r.findByKey(t, &other); found {
			t.Errorf("FindByKey(%+v) = %+v, want none", other, made)
		}
		r.claim(t, r.keyed(&other))
	}
}

func refusalFreesItsKey(t *testing.T, r CommandRecord) {
	for _, state := range []telematics.State{telematics.Rejected, telematics.Expired} {
		k := NewKey()
		r.settle(t, settlement(r.claim(t, r.keyed(k)), state))
		if made, found := r.findByKey(t, k); found {
			t.Errorf("%s: FindByKey = %+v, want none", state, made)
		}
		r.claim(t, r.keyed(k))
	}
	for _, state := range []telematics.State{telematics.Failed, telematics.Unknown, telematics.Succeeded} {
		k := NewKey()
		r.settle(t, settlement(r.claim(t, r.keyed(k)), state))
		if _, found := r.findByKey(t, k); !found {
			t.Errorf("%s: FindByKey found none, though the command may have been executed", state)
		}
	}
}

func takenLaneLeavesTheKeyFree(t *testing.T, r CommandRecord) {
	k := NewKey()
	occupant := r.claimLock(t)
	c := r.keyed(k)
	c.Vehicle, c.Unit = occupant.Vehicle, occupant.Unit
	if claim, err := r.Here.Claim(t.Context(), &c); err != nil || claim.Occupant == nil {
		t.Fatalf("Claim = %+v, %v; want an occupant", claim, err)
	}
	if made, found := r.findByKey(t, k); found {
		t.Errorf("FindByKey = %+v for a command that was not claimed", made)
	}
}

func oneOfManyRepetitionsWins(t *testing.T, r CommandRecord) {
	k := NewKey()
	var mu sync.Mutex
	var repetitions []telematics.Command
	for range 16 {
		repetitions = append(repetitions, r.keyed(k))
	}
	won := 0
	race(16, r.Here, r.There, func(i int, commands broker.Commands) {
		claim, err := commands.Claim(t.Context(), &repetitions[i])
		assert.NoError(t, err, "Claim")
		mu.Lock()
		defer mu.Unlock()
		if claim.Taken() {
			won++
		}
	})
	assert.Equal(t, won, 1, "of 16 claims with one key won")
}
