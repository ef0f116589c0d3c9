package rentals

import (
	"testing"

	"motorpool/internal/require"
	"motorpool/rental/rentaltest"
	"motorpool/store/storetest"
)

// Whatever makes a card useless: the same transaction makes it one to detach.
func TestDetachments_ComeWithTheChangeThatMakesACardUseless(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.Vehicles(t, p.DB)()
	c := newCardholder(t, p)
	c.add(true)
	removed := c.add(false)
	_, err := c.RemoveMethod(t.Context(), c.client.ID, removed.ID, c.line("payment_method.remove"))
	require.NoError(t, err)
	card := rentaltest.NewCard()
	_, err = c.put(card, false)
	require.NoError(t, err)
	renewed := card
	renewed.Token, renewed.ExpYear = rentaltest.NewCard().Token, 2035
	_, err = c.put(renewed, false)
	require.NoError(t, err)
	twice := renewed
	twice.Token = rentaltest.NewCard().Token
	_, err = c.put(twice, false)
	require.NoError(t, err)
	for what, token := range map[string]string{
		"removed": removed.Token, "replaced by a renewed one": card.Token, "one more of the same": twice.Token,
	} {
		var n int
		if err := p.Pool.Get(&n, `select count(*) from detachments where token = $1
			and client_id = $2`, token, c.client.ID); err != nil || n != 1 {
			t.Errorf("a card that is %s: %d rows of detachments, %v; want one", what, n, err)
		}
	}
	var all int
	if err := p.Pool.Get(&all, `select count(*) from detachments`); err != nil || all != 3 {
		t.Errorf("%d rows of detachments, %v; want 3", all, err)
	}
}
