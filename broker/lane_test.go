package broker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestLane_SecondCommandIsRefusedWhileTheFirstIsOpen(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		var first sync.WaitGroup
		var occupant telematics.Command
		first.Go(func() { occupant, _ = w.send(telematics.Lock) })
		time.Sleep(4 * time.Second)

		_, err := w.sendVia(1, w.order(telematics.Unlock))
		w.wantCode(err, telematics.CommandInProgress)
		if err.RetryAfter != 6*time.Second || !err.Retryable {
			t.Errorf("retry after %v, want the remaining 6 s of the occupant", err.RetryAfter)
		}
		w.answers(1, time.Second, telematics.Succeeded)
		order := w.order(telematics.AttentionSignal)
		order.Attention = &telematics.Attention{Signal: telematics.Horn, Duration: time.Second}
		if _, err := w.sendVia(1, order); err != nil {
			t.Errorf("an order in another lane is refused: %v", err)
		}
		first.Wait()
		assert.Equal(t, err.Command, occupant.ID, "the refusal names command")
		_, after := w.sendVia(1, w.order(telematics.Unlock))
		w.wantCode(after, "")
	})
}

// claimed puts an open command into the record whose instance does not exist.
func (w *world) claimed(budget time.Duration) telematics.Command {
	w.Helper()
	now := time.Now()
	c := telematics.Command{
		ID: uuid.New(), Vehicle: car, Agency: 1, Unit: unit, Action: telematics.Lock, Lane: telematics.AccessLane,
		Instance: "gone", Actor: admin, State: telematics.Accepted, Requested: now, Deadline: now.Add(budget),
	}
	if _, err := w.Commands.Claim(w.Context(), &c); err != nil {
		w.Fatal(err)
	}
	return c
}

func TestLane_CommandOfADeadInstanceIsSettledByAnother(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		c := w.claimed(10 * time.Second)
		time.Sleep(11 * time.Second)
		if got := w.record(c.ID); got.State != telematics.Accepted {
			t.Errorf("settled as %s before the owner's time for it was over", got.State)
		}
		time.Sleep(2 * time.Second)
		if got := w.record(c.ID); got.State != telematics.Unknown {
			t.Errorf("the record says %s 3 s after the deadline, want unknown", got.State)
		}
		w.wantEntries(telematics.CommandTimeout)
		w.wantCount("motorpool_commands_swept_total", 1)
	})
}

func TestLane_OverdueOccupantIsSettledBeforeTheNextCommand(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, 100*time.Millisecond, telematics.Succeeded)
		c := w.claimed(2 * time.Second)
		time.Sleep(2*time.Second + time.Millisecond)
		if _, err := w.send(telematics.Unlock); err != nil {
			t.Errorf("the order is refused because of an overdue command: %v", err)
		}
		assert.Equal(t, w.record(c.ID).State, telematics.Unknown, "the occupant")
	})
}
