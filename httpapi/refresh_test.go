package httpapi_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/httpapi"
	"motorpool/httpapi/request"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

const refresh42 = status42 + "?refresh=true"

// reports makes the vehicle's unit answer a refresh with values.
func (a *api) reports(values map[telematics.Field]any) {
	a.controller.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
		c := settled(o, telematics.Succeeded)
		c.Reported = &telematics.Report{At: now, Values: values}
		return c, nil
	}
}

func TestRefresh_RequestsAReportAndReturnsIt(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Snapshot = reported(now.Add(-time.Hour), map[telematics.Field]any{telematics.SpeedKmh: 50.0, telematics.OilLife: 61.0})
		t.Contact = telematics.Contact{Status: telematics.Online, LastSeen: now.Add(-time.Hour)}
	})
	a.reports(map[telematics.Field]any{telematics.SpeedKmh: 7.0})
	r := a.get(refresh42).wants(200, "")
	r.has("telemetry.speed_kmh", 7.0, "diagnostics.oil_life_percent", 61.0, "connectivity.status", "online").
		meta("source", "live")
	r.shows(`"telemetry":"2026-01-02T10:00:00.250Z"`, `"diagnostics":"2026-01-02T09:00:00.250Z"`)
	want := delivery.Order{Vehicle: 42, Action: telematics.ReportState, Budget: telematics.DefaultBudget,
		Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin}, RequestID: uuid.MustParse(r.body.RequestID)}
	same(t, a.controller.last(), want, "order")
	a.wantsEntries(logged{Action: telematics.StatusRead, Outcome: telematics.Executed})
	for _, plain := range []string{status42, status42 + "?refresh=false"} {
		a.get(plain).wants(200, "").has("telemetry.speed_kmh", 50.0).meta("source", "cache")
	}
	same(t, a.controller.count(), 1, "orders")
}

func TestStatusAndList_TellWhatIsNotStored(t *testing.T) {
	a := newAPI(t)
	states := func() [3]any {
		t.Helper()
		return [3]any{
			a.get(allVehicles+"?q=42").wants(200, "").at("0", "state_stored"), a.get(status42).wants(200, "").body.Meta["state_stored"],
			a.get(refresh42).wants(200, "").body.Meta["state_stored"],
		}
	}
	for unstored, want := range map[bool][3]any{false: {true, true, true}, true: {false, false, false}} {
		a.fleet.twins = map[telematics.VehicleID]telematics.Twin{42: twin(42, 1, func(t *telematics.Twin) {
			t.Unstored, t.Snapshot = unstored, reported(now, map[telematics.Field]any{telematics.SpeedKmh: 50.0})
		})}
		a.reports(map[telematics.Field]any{telematics.SpeedKmh: 50.0}) // which the store has
		same(t, states(), want, "unstored %t: list, status and refresh have state_stored", unstored)
	}
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Snapshot = reported(now.Add(-time.Second), map[telematics.Field]any{telematics.SpeedKmh: 50.0})
	})
	assert.Equal(t, states(), [3]any{true, true, false}, "state_stored of list, status, and a refresh whose report the store does not have")
}

func TestRefresh_WithoutAReportIsFromTheCache(t *testing.T) {
	a := newAPI(t)
	a.controller.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
		c := settled(o, telematics.Succeeded)
		c.Reported = nil
		return c, nil
	}
	a.get(refresh42).wants(200, "").meta("source", "cache")
}

// See TestErrors_EachResultOfACommandHasItsAnswer.
func TestRefresh_FailureIsAnsweredAndRecordedLikeACommand(t *testing.T) {
	a := newAPI(t)
	a.controller.ends(telematics.Unknown)
	r := a.get(refresh42).wants(504, "command_timeout").wantsRetryAfter("10")
	if r.body.Data != nil || text(r.body.Error.Outcome) != "unknown" || r.body.Error.CommandID == nil {
		t.Errorf("error %s", r.text)
	}
	a.controller.fails(telematics.Halted(telematics.Halt{Why: "x"}))
	a.get(refresh42).wants(503, "commands_halted").wantsRetryAfter("60")
	refused := logged{Action: telematics.StatusRead, Outcome: telematics.NotExecuted, Code: "command_timeout", Agency: 1, Vehicle: 42}
	halted := refused
	halted.Code = telematics.CommandsHalted
	a.wantsEntries(refused, halted)
}

func TestRefresh_MayTakeLongerThanARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const read = 50 * time.Millisecond
		a := newAPI(t, func(c *httpapi.Config) { c.ReadBudget = read })
		a.controller.send = func(ctx context.Context, o delivery.Order) (telematics.Command, error) {
			select {
			case <-time.After(3 * read):
				return settled(o, telematics.Succeeded), nil
			case <-ctx.Done():
				return telematics.Command{}, telematics.Broken(ctx.Err())
			}
		}
		a.get(refresh42).wants(200, "")
		a.fleet.block = true // the read after the refresh has the time limit of reads
		a.get(refresh42).wants(503, "service_unavailable")
	})
}

func TestRefresh_WaitsAsLongAsPreferred(t *testing.T) {
	a := newAPI(t)
	for prefer, want := range map[string]struct {
		budget  time.Duration
		applied string
	}{
		"wait=20": {20 * time.Second, "wait=20"}, "respond-async": {telematics.DefaultBudget, ""},
		"respond-async, wait=5": {5 * time.Second, "wait=5"}, "wait=31": {telematics.MaxBudget, "wait=30"},
	} {
		r := a.get(refresh42, withHeader("Prefer", prefer)).wants(200, "")
		if got, applied := a.controller.last().Budget, r.header.Get("Preference-Applied"); got != want.budget || applied != want.applied {
			t.Errorf("Prefer %s: budget %v, applied %q; want %+v", prefer, got, applied, want)
		}
	}
	a.get(status42, withHeader("Prefer", "wait=20")).wants(200, "").heads("Preference-Applied", "")
}

func TestRefresh_MustBeTrueOrFalse(t *testing.T) {
	a := newAPI(t)
	for _, query := range []string{"1", "T", "TRUE", "yes", "", "null", "true&refresh=true"} {
		r := a.get(status42+"?refresh="+query).wants(422, "validation_failed")
		same(t, len(r.body.Errors["refresh"]), 1, "refresh=%s: errors", query)
	}
	same(t, a.controller.count(), 0, "orders")
}

func TestLimit_RefreshesOfAVehicle(t *testing.T) {
	a, l := limitedAPI(t, request.Rates{Vehicle: 10, Refresh: 2, Admin: 100})
	a.get(refresh42).wants(200, "").wantsQuota("2", "1", "6")
	a.get(refresh42, ofAgency(1)).wants(200, "").wantsQuota("2", "0", "6")
	r := a.get(refresh42).wants(429, "rate_limited").wantsQuota("2", "0", "3").wantsRetryAfter("3")
	r.says("The limit of 2 refreshes a minute for vehicle 42 is used up; nothing was sent. Try again in 3 seconds.")
	same(t, text(r.body.Error.Outcome), "not_executed", "outcome")
	like(t, a.lastEntry(), logged{Code: "rate_limited", Action: telematics.StatusRead}, "entry")
	l.drain()
	// A plain read does not count against the vehicle's limit.
	a.get(status42).wants(200, "").wantsQuota("100", "97", "6")
	a.get(status42+"?refresh=false").wants(200, "")
	a.get("/api/v1/admin/vehicles?refresh=true").wants(422, "validation_failed") // it has none
	assert.DeepEqual(t, l.drain(), []string{"admin:0:admin-7", "admin:0:admin-7", "admin:0:admin-7"}, "counted against")
	a.post(lock).wants(200, "").wantsQuota("10", "9", "6") // commands have a separate limit
	a.get("/api/v1/admin/vehicles/9/status?refresh=true", ofAgency(1))
	a.get("/api/v1/admin/vehicles/9/status?refresh=true", ofAgency(2)).wantsQuota("2", "1", "6")
	if a.controller.count() == 0 {
		t.Error("no order reached the controller")
	}
}

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
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		did := slices.Clone(w.did)
		w.mu.Unlock()
		if slices.Equal(did, want) {
			return
		}
		if len(did) > len(want) {
			t.Fatalf("%s: %q, want %q", what, did, want)
		}
		if time.Now().After(deadline) {
			require.Late(t, "%s: %q, want %q", what, did, want)
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
