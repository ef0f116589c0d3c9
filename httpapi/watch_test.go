package httpapi_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/httpapi"
	"motorpool/telematics"
)

// watches records what is watched.
type watches struct {
	mu  sync.Mutex
	did []string
}

func (w *watches) note(format string, v telematics.VehicleID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, fmt.Sprintf(format, v))
}

func (w *watches) Begin(v telematics.Vehicle) func() {
	w.note("begin %d", v.ID)
	return func() { w.note("end %d", v.ID) }
}

func (w *watches) Briefly(v telematics.Vehicle) { w.note("briefly %d", v.ID) }

func (w *watches) want(t *testing.T, what string, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		did := slices.Clone(w.did)
		w.mu.Unlock()
		if slices.Equal(did, want) {
			return
		}
		if time.Now().After(deadline) || len(did) > len(want) {
			t.Fatalf("%s: %q, want %q", what, did, want)
		}
	}
}

func TestWatch_LastsForAStreamOfOneVehicle(t *testing.T) {
	seen := &watches{}
	l := newLiveWith(t, brokertest.NewEvents(), func(c *httpapi.Config) { c.Watches = seen })
	for _, query := range []string{"", "?agency_id=1", "?vehicle_id=42&event=command", "?vehicle_id=42&agency_id=2", "?vehicle_id=777"} {
		l.follow(query).awaitBegin(t).close()
	}
	s := l.follow("?vehicle_id=42").awaitBegin(t)
	seen.want(t, "after a stream of one vehicle", "begin 42")
	other := l.follow("?vehicle_id=1&event=status,command").awaitBegin(t)
	seen.want(t, "after a stream of one vehicle's status", "begin 42", "begin 1")
	s.close()
	seen.want(t, "after one stream has ended", "begin 42", "begin 1", "end 42")
	other.close()
	seen.want(t, "after both have ended", "begin 42", "begin 1", "end 42", "end 1")
}

func TestWatch_IsBriefForARefresh(t *testing.T) {
	seen := &watches{}
	a := newAPI(t, func(c *httpapi.Config) { c.Watches = seen })
	a.get(status42).wants(200, "")
	a.get("/api/v1/admin/vehicles/9/status?refresh=true", ofAgency(1)).wants(404, "vehicle_not_found")
	seen.want(t, "without a refresh")
	a.get(refresh42).wants(200, "")
	seen.want(t, "after a refresh", "briefly 42")
}
