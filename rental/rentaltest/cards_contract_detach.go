package rentaltest

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
)

// detachable returns the tokens of a client's cards that are to be detached within a time.
func (r CardRecord) detachable(t *testing.T, within time.Duration) map[string]rental.Detachment {
	t.Helper()
	time.Sleep(within)
	due, err := r.There.TakeDetachments(t.Context(), 100, time.Hour)
	require.NoError(t, err)
	found := map[string]rental.Detachment{}
	for _, d := range due {
		found[d.Token] = d
	}
	return found
}

func toBeDetached(t *testing.T, r CardRecord) {
	h := r.client(t)
	later := func(token string, after time.Duration) {
		t.Helper()
		require.NoError(t, r.Here.DetachLater(t.Context(), h.ID, token, after))
	}
	_, err := r.Here.SetCustomer(t.Context(), h.ID, "cus_detach")
	require.NoError(t, err)
	stored, interrupted := NewCard(), NewCard()
	later(stored.Token, 0)
	_, err = h.put(stored, false, nil)
	require.NoError(t, err)
	later(interrupted.Token, 0)
	again := h.add(false)
	later(again.Token, 0) // added again, by a request that did not come to its end
	later(NewCard().Token, time.Hour)
	if due := r.detachable(t, 10*time.Millisecond); len(due) != 1 ||
		due[interrupted.Token] != (rental.Detachment{Client: h.ID, Customer: "cus_detach", Token: interrupted.Token}) {
		t.Errorf("due are %v, want the card of the interrupted request only", due)
	}
	later(interrupted.Token, 0)
	require.NoError(t, r.Here.Detached(t.Context(), interrupted.Token))
	if due := r.detachable(t, 10*time.Millisecond); len(due) > 0 {
		t.Errorf("due are %v, want none that is detached or was taken", due)
	}
}
