package alerts

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestEvent_HasTheWholeAlert(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	for _, want := range []Alert{
		{ID: uuid.New(), Rule: LeftOpen, Severity: Warning, Since: at, Opened: at.Add(time.Second), Vehicle: 42, Agency: 7},
		{
			ID: uuid.New(), Rule: LeftOpen, Severity: Warning, Plate: "M-1", Person: "eva", Booking: 9, Command: uuid.New(), Vehicle: 42,
			Agency: 7, Facts: map[string]any{"volts": 11.7}, Since: at, Opened: at.Add(time.Second), Cleared: at.Add(time.Minute),
			Seen: &Acknowledgement{By: "tom", At: at.Add(2 * time.Second), Note: "towed"},
		},
	} {
		if got, change := FromEvent(want.Event(Acknowledged, at)); !reflect.DeepEqual(got, want) || change != Acknowledged {
			t.Errorf("got %s %+v, want %+v", change, got, want)
		}
	}
}
