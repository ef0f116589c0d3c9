package rentals

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/idempotency"
	"motorpool/store/storetest"
)

func TestAddMethod_KeyExpiresAfterADay(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	c := newCardholder(t, p)
	key := rentaltest.NewKey(c.client.Subject)
	addition := func() rental.Addition {
		return rental.Addition{
			Client: c.client.ID, Card: rentaltest.NewCard(), Key: key, Activity: c.line(rental.MethodAdd),
			Now: time.Now(),
		}
	}
	first, err := p.AddMethod(t.Context(), addition())
	require.NoError(t, err)
	storetest.Exec(t, p.Pool, `update idempotency_keys set made_at = made_at - interval '24 hours' where key = $1`, key.Key)
	if _, found, err := p.AddedUnder(t.Context(), c.client.ID, *key); found || err != nil {
		t.Errorf("AddedUnder = %v, %v; want nothing found after a day", found, err)
	}
	second, err := p.AddMethod(t.Context(), addition())
	if err != nil || second.Replayed || second.Method.ID == first.Method.ID {
		t.Errorf("AddMethod = %+v, %v; want another method", second, err)
	}
	storetest.Exec(t, p.Pool, `update idempotency_keys set made_at = made_at - interval '24 hours'`)
	if more, err := idempotency.Forget(t.Context(), p.DB, 10); more || err != nil {
		t.Errorf("Forget = %v, %v", more, err)
	}
	var left int
	if err := p.Pool.Get(&left, `select count(*) from idempotency_keys`); err != nil || left > 0 {
		t.Errorf("%d keys are left, %v", left, err)
	}
}
