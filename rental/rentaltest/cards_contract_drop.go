package rentaltest

import (
	"encoding/json"
	"fmt"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

func droppedCard(t *testing.T, r CardRecord) {
	h := r.client(t)
	first, second, third := h.add(false), h.add(false), h.add(false)
	drop := func(m rental.Method) {
		t.Helper()
		for range 2 { // the processor may tell it twice
			require.NoError(t, r.Here.DropCard(t.Context(), m.Token,
				telematics.Activity{At: added, Action: rental.MethodDropped, Actor: rental.System()}))
		}
	}
	r.Use(t, second)
	drop(second) // it is useless, whatever uses it
	h.wants(first.ID, third.ID, first.ID)
	fourth := h.add(false)
	drop(first)
	h.wants(fourth.ID, fourth.ID, third.ID)
	drop(fourth)
	drop(third)
	h.wants(0)
	again := h.add(false)
	h.wants(again.ID, again.ID)
}

func refreshed(t *testing.T, r CardRecord) {
	h := r.client(t)
	first := h.add(false)
	card := first.Card
	card.LastFour, card.ExpMonth, card.ExpYear = "1881", 1, 2033
	require.NoError(t, r.Here.RefreshCard(t.Context(), card))
	if got := h.wants(first.ID, first.ID)[0].Card; got != card {
		t.Errorf("%+v", got)
	}
	card.Token = NewCard().Token
	assert.NoError(t, r.Here.RefreshCard(t.Context(), card), "of a card that is not on record")
}

func lineOfChange(t *testing.T, r CardRecord) {
	h := r.client(t)
	key := NewKey(h.Subject)
	first := h.add(false)
	second, err := h.put(NewCard(), false, key)
	require.NoError(t, err)
	if _, err := h.put(NewCard(), false, key); err != nil { // a repetition, which changes nothing
		t.Fatal(err)
	}
	_, _, err = h.makeDefault(second.Method.ID, nil)
	require.NoError(t, err)
	require.NoError(t, h.remove(first.ID))
	wantCode(t, h.remove(second.Method.ID), rental.DefaultMethod)
	require.NoError(t, r.Here.DropCard(t.Context(), second.Method.Token,
		telematics.Activity{At: added, Action: rental.MethodDropped, Actor: rental.System()}))
	var got []string
	for _, line := range r.Lines(t) {
		encoded, err := json.Marshal(line.Details["payment_method_id"]) // 1000001, not 1e+06
		require.NoError(t, err)
		id := string(encoded)
		if id != fmt.Sprint(first.ID) && id != fmt.Sprint(second.Method.ID) {
			continue
		}
		if line.Outcome != telematics.Executed || line.Agency != 1 || line.Booking != 0 || line.Details["last_four"] != "4242" ||
			line.Details["brand"] != "visa" || fmt.Sprint(line.Details["exp_month"], line.Details["exp_year"]) != "12 2030" ||
			len(line.Details) != 6 {
			t.Errorf("line %+v", line)
		}
		got = append(got, fmt.Sprint(line.Action, " ", line.Actor.Role, " ", id, " ", line.Details["is_default"]))
	}
	a, b := first.ID, second.Method.ID
	want := []string{
		fmt.Sprint("payment_method.add client ", a, " true"), fmt.Sprint("payment_method.add client ", b, " false"),
		fmt.Sprint("payment_method.default client ", b, " true"), fmt.Sprint("payment_method.remove client ", a, " false"),
		fmt.Sprint("payment_method.dropped system ", b, " true"),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}
