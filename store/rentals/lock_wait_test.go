package rentals

import (
	"context"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// A change waits for a lock longer than a request of a batch does: the wait does not mean that the
// server is unavailable.
func TestChanges_WaitForTheLockOfTheirClient(t *testing.T) {
	w := newRentalWorld(t)
	p := open(t, w.address)
	booking := w.book(draft(1, 1, 9))
	holder, err := w.here.Pool.Beginx()
	require.NoError(t, err)
	var client rental.ClientID
	require.NoError(t, holder.Get(&client, `select id from clients where subject = 'anna' for update`))
	var line sync.WaitGroup
	for name, change := range map[string]func() error{
		"default": func() error {
			_, _, err := p.SetDefault(t.Context(), client, w.master,
				telematics.Activity{At: noon, Actor: anna, Action: rental.MethodDefault}, nil)
			return err
		},
		"card": func() error {
			_, err := p.AddMethod(t.Context(), rental.Addition{Client: client, Now: noon,
				Card:     rental.Card{Token: "pm_line", Brand: "amex", LastFour: "8431", ExpMonth: 12, ExpYear: 2030},
				Activity: telematics.Activity{At: noon, Actor: anna, Action: rental.MethodAdd}})
			return err
		},
		"cancellation": func() error {
			_, _, err := p.Amend(t.Context(), asks(anna, rental.BookingCancel, booking.ID, noon), cancelAt(noon.Add(-24*time.Hour)))
			return err
		},
	} {
		line.Go(func() {
			assert.NoError(t, change(), "%s", name)
		})
	}
	time.Sleep(2 * p.Timeout() / pg.LockShare) // twice as long as a request of a batch waits
	require.NoError(t, holder.Commit())
	line.Wait()
}

// Changes that wait for one locked client leave connections to all others.
func TestChanges_ThatWaitLeaveHalfOfTheConnections(t *testing.T) {
	w := newRentalWorld(t)
	p := openPatient(t, w.address)
	holder, err := w.here.Pool.Beginx()
	require.NoError(t, err)
	var client rental.ClientID
	require.NoError(t, holder.Get(&client, `select id from clients where subject = 'anna' for update`))
	size := p.Pool.Stats().MaxOpenConnections
	var waiting sync.WaitGroup
	for range 3 * size {
		waiting.Go(func() {
			_, _, err := p.SetDefault(
				t.Context(), client, w.master, telematics.Activity{At: noon, Actor: anna, Action: rental.MethodDefault},
				nil,
			)
			assert.NoError(t, err)
		})
	}
	storetest.Eventually(t, "changes wait for the lock", func() bool {
		return w.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) >= size/2
	})
	// A change waits for the lock for as long.
	ctx, cancel := context.WithTimeout(t.Context(), p.Timeout()/pg.LockShare)
	defer cancel()
	for range 3 * size {
		if _, err := p.Client(ctx, 1, "ben"); err != nil {
			t.Fatalf("another client: %v", err)
		}
	}
	if n := w.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`); n > size/2 {
		t.Errorf("%d of %d connections wait for the lock, want half at most", n, size)
	}
	require.NoError(t, holder.Commit())
	waiting.Wait()
}
