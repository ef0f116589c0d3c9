package rentaltest

import (
	"errors"
	"sync"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

func repeatedAddition(t *testing.T, r CardRecord) {
	h := r.client(t)
	key := NewKey(h.Subject)
	if _, found, err := r.Here.AddedUnder(t.Context(), h.ID, *key); found || err != nil {
		t.Fatalf("a new key was used: %v", err)
	}
	first, err := h.put(NewCard(), false, key)
	require.NoError(t, err)
	second := h.add(true)
	a, found, err := r.There.AddedUnder(t.Context(), h.ID, *key)
	if err != nil || !found || !a.Replayed || a.Existed || a.Method.ID != first.Method.ID || a.Method.Default {
		t.Errorf("AddedUnder = %+v, %v, %v", a, found, err)
	}
	unused := NewCard()
	if a, err := h.put(unused, true, key); err != nil || !a.Replayed || a.Unused != unused.Token || a.Method.ID != first.Method.ID ||
		a.Method.Default {
		t.Errorf("AddMethod = %+v, %v", a, err)
	}
	if a, err := h.put(first.Method.Card, true, key); err != nil || !a.Replayed || a.Unused != "" {
		t.Errorf("AddMethod with the same token = %+v, %v", a, err)
	}
	h.wants(second.ID, second.ID, first.Method.ID)
	require.NoError(t, h.remove(first.Method.ID))
	_, found, err = r.There.AddedUnder(t.Context(), h.ID, *key)
	if wantCode(t, err, rental.MethodNotFound); !found {
		t.Error("the key is free")
	}
}

func repeatedDefault(t *testing.T, r CardRecord) {
	h := r.client(t)
	first, second := h.add(false), h.add(false)
	key := NewKey(h.Subject)
	if _, replayed, err := h.makeDefault(second.ID, key); replayed || err != nil {
		t.Fatalf("%v, %v", replayed, err)
	}
	_, _, err := h.makeDefault(first.ID, nil)
	require.NoError(t, err)
	m, replayed, err := h.makeDefault(second.ID, key)
	if err != nil || !replayed || m.ID != second.ID || m.Default {
		t.Errorf("SetDefault = %+v, %v, %v", m, replayed, err)
	}
	h.wants(first.ID, second.ID, first.ID)
	require.NoError(t, h.remove(second.ID))
	_, _, err = h.makeDefault(second.ID, key)
	wantCode(t, err, rental.MethodNotFound)
}

func oneRequest(t *testing.T, r CardRecord) {
	h := r.client(t)
	key := NewKey(h.Subject)
	first, err := h.put(NewCard(), false, key)
	require.NoError(t, err)
	second := h.add(false)
	other := *key
	other.Fingerprint[0]++
	_, err = h.put(NewCard(), true, &other)
	wantCode(t, err, telematics.IdempotencyMismatch)
	_, _, err = h.makeDefault(second.ID, &other)
	wantCode(t, err, telematics.IdempotencyMismatch)
	_, _, err = r.There.AddedUnder(t.Context(), h.ID, other)
	wantCode(t, err, telematics.IdempotencyMismatch)
	h.wants(first.Method.ID, second.ID, first.Method.ID)
}

func declineKept(t *testing.T, r CardRecord) {
	h := r.client(t)
	key := NewKey(h.Subject)
	decline := rental.Decline{Code: "insufficient_funds", Message: "Your card has insufficient funds."}.Refusal()
	require.NoError(t, r.Here.KeepDecline(t.Context(), *key, decline))
	a, found, err := r.There.AddedUnder(t.Context(), h.ID, *key)
	var kept *telematics.Error
	if !errors.As(err, &kept) || *kept != *decline || !found || !a.Replayed {
		t.Errorf("AddedUnder = %+v, %v, %+v", a, found, err)
	}
	a, err = h.put(NewCard(), false, key)
	if wantCode(t, err, rental.CardDeclined); !a.Replayed {
		t.Errorf("AddMethod = %+v", a)
	}
	h.wants(0)
	used := NewKey(h.Subject)
	first, err := h.put(NewCard(), false, used)
	require.NoError(t, err)
	assert.NoError(t, r.Here.KeepDecline(t.Context(), *used, decline), "where the key is in use")
	if a, _, err := r.There.AddedUnder(t.Context(), h.ID, *used); err != nil || a.Method.ID != first.Method.ID {
		t.Errorf("AddedUnder = %+v, %v", a, err)
	}
}

func oneKeyConcurrently(t *testing.T, r CardRecord) {
	h := r.client(t)
	key := NewKey(h.Subject)
	results := make([]rental.Added, 12)
	cards := make([]rental.Card, len(results))
	var wg sync.WaitGroup
	for i := range results {
		cards[i] = NewCard()
		wg.Go(func() {
			var err error
			if results[i], err = h.put(cards[i], false, key); err != nil {
				t.Errorf("AddMethod: %v", err)
			}
		})
	}
	wg.Wait()
	fresh := 0
	for i, a := range results {
		if a.Method.ID != results[0].Method.ID {
			t.Errorf("%d and %d were added", a.Method.ID, results[0].Method.ID)
		}
		switch {
		case !a.Replayed:
			fresh++
		case a.Unused != cards[i].Token:
			t.Errorf("%+v: its token is of no use", a)
		}
	}
	assert.Equal(t, fresh, 1, "answers that are the first")
	h.wants(results[0].Method.ID, results[0].Method.ID)
}
