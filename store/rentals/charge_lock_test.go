package rentals

import (
	"context"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/storetest"
)

// A worker that stores an attempt with a card, and a concurrent change of that card, lock the same
// charge, in either order.
func TestWriteCharge_DoesNotDeadlockWithAChangeOfTheCard(t *testing.T) {
	address := storetest.NewDatabase(t)
	p, watch := openPatient(t, address), open(t, address)
	add := storetest.Vehicles(t, p.DB)
	for name, change := range map[string]func(o *owing, first rental.Method) error{
		"renewed": func(o *owing, first rental.Method) error {
			renewed := first.Card
			renewed.Token, renewed.ExpYear = rentaltest.NewCard().Token, 2039
			_, err := o.put(renewed, false)
			return err
		},
		"dropped": func(o *owing, first rental.Method) error {
			return o.DropCard(context.Background(), first.Token, o.line(rental.MethodDropped))
		},
	} {
		t.Run(name, func(t *testing.T) {
			vehicle, _ := add()
			o := newOwing(t, p, vehicle)
			first := o.add(false)
			o.add(false)
			charge := o.fee(`state = 'declined', next_attempt_at = now()`, first.ID)
			jobs, err := p.TakeCharges(t.Context(), 10, time.Minute)
			require.NoError(t, err)
			jobs = slices.DeleteFunc(jobs, func(j rental.Job) bool { return j.ID != charge })
			if len(jobs) != 1 || jobs[0].Card == nil || jobs[0].Card.ID != first.ID {
				t.Fatalf("took %+v, want one charge with the first card", jobs)
			}
			inTheWay := storetest.Begin(t, watch.Pool)
			storetest.Exec(t, inTheWay, `select from charges where id = $1 for update`, charge)
			waiting := func(n int) func() bool {
				return func() (there bool) {
					err := watch.Pool.Get(&there, `
						select count(*) = $1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`, n)
					assert.NoError(t, err)
					return there
				}
			}
			changed, written := make(chan error, 1), make(chan error, 1)
			go func() { changed <- change(o, first) }()
			storetest.Eventually(t, "the change waits for the charge", waiting(1))
			go func() {
				_, err := p.WriteCharge(
					context.Background(), jobs[0],
					rental.Result{State: rental.Unknown, CountAttempt: true, Intent: "pi_" + charge.String(), Card: jobs[0].Card},
				)
				written <- err
			}()
			storetest.Eventually(t, "the attempt waits as well", waiting(2))
			require.NoError(t, inTheWay.Commit())
			assert.NoError(t, <-changed, "the change")
			assert.NoError(t, <-written, "the attempt")
		})
	}
}
