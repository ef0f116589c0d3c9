package httpapi_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/alerts"
	"motorpool/rental"
	"motorpool/telematics"
)

func TestActivity_EntryMatchesTheContract(t *testing.T) {
	a := newAPI(t)
	command, request := uuid.New(), uuid.New()
	a.fleet.lines = []telematics.Activity{
		{ID: 1, At: now, Actor: telematics.Actor{Subject: "motorpool", Role: telematics.System}, Action: "command.lock"},
		{
			ID: 2, At: now, Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin}, Agency: 1, Vehicle: 42,
			Action: "command.attention",
			Attention: &telematics.Attention{
				Signal: telematics.Horn, Duration: time.Second,
			},
			Outcome: telematics.MayHave, Code: telematics.CommandTimeout, Command: command, RequestID: request,
			Latency: 10 * time.Second, Late: true,
		},
	}
	r := a.get("/api/v1/admin/activity").wants(200, "").says("2 entries.")
	lines := r.body.Data.([]any)
	r.body.Data = lines[0]
	for name, want := range map[string]any{
		"id": 2.0, "at": "2026-01-02T10:00:00.250Z", "actor": "admin-7", "role": "admin", "agency_id": 1.0, "vehicle_id": 42.0,
		"action":  "command.attention",
		"outcome": "unknown", "code": "command_timeout", "command_id": command.String(), "request_id": request.String(),
		"latency_ms": 10000.0, "late": true,
	} {
		same(t, r.at(name), want, "%s", name)
	}
	r.has("parameters.signal", "horn")
	r.body.Data = lines[1]
	for _, name := range []string{"agency_id", "vehicle_id", "parameters", "outcome", "code", "command_id", "request_id"} {
		same[any](t, r.at(name), nil, "%s", name)
	}
}

func TestActivity_FiltersReachTheStore(t *testing.T) {
	a := newAPI(t)
	a.get("/api/v1/admin/activity?vehicle_id=42&actor=admin-7&action=command.lock&outcome=not_executed&changes=true&"+
		"from=2026-01-01T00:00:00%2B01:00&to=2026-01-02T00:00:00.5Z",
		ofAgency(1)).wants(200, "")
	got := a.fleet.asked.activities
	want := telematics.ActivityQuery{
		Agency: 1, Vehicle: 42, Actor: "admin-7", Action: "command.lock", Outcome: telematics.NotExecuted, Changes: true,
		Page: telematics.Page{Limit: 51},
	}
	if !got.From.Equal(time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC)) ||
		!got.To.Equal(time.Date(2026, 1, 2, 0, 0, 0, 500_000_000, time.UTC)) {
		t.Errorf("from %v to %v, want the times of the query in UTC", got.From, got.To)
	}
	got.From, got.To = time.Time{}, time.Time{}
	same(t, got, want, "query")
}

func TestActivity_EachRecordedActionCanBeFiltered(t *testing.T) {
	a := newAPI(t)
	written := []string{
		telematics.StatusRead, telematics.VehiclesRead, telematics.CommandsRead, telematics.EventsRead, telematics.CommandsHalt,
		telematics.CommandsResume, telematics.BulkOrder, telematics.AnswerUnrecorded,
		telematics.HistoryRead, telematics.VehicleAdd, telematics.VehicleChange, telematics.StationAdd, telematics.StationChange,
		telematics.NoteAdd, telematics.FleetImport, rental.AreaPut, rental.AreaRemove, rental.TariffChange, rental.RulesChange,
		alerts.Acknowledge, alerts.RulesChange,
		rental.QuoteCreate, rental.BookingCreate, rental.BookingCancel, rental.BookingLapse,
		rental.BookingExtend, rental.BookingMove, rental.BookingStart, rental.BookingEnd, rental.BookingFee,
		rental.BookingRefund, rental.BookingCapture,
		rental.PauseEnd, rental.TransitionCancel, rental.TransitionRepeat, rental.TransitionOverride,
		rental.MethodAdd, rental.MethodRemove, rental.MethodDefault, rental.MethodDropped,
		rental.ChargeDispute, rental.AgencyKeyAdd, rental.AgencyKeyRetire, rental.AgencyKeyRevoke,
		rental.ChargeActivity(rental.StartCharge), rental.ChargeActivity(rental.DepositCharge),
		rental.ChargeActivity(rental.ExtensionCharge),
		rental.ChargeActivity(rental.FeeCharge), rental.ChargeActivity(rental.RefundCharge),
	}
	for _, action := range append(telematics.ControlActions, telematics.ReportState) {
		written = append(written, telematics.CommandActivity(action))
	}
	for _, kind := range rental.TransitionKinds {
		written = append(written, rental.TransitionActivity(kind))
	}
	for _, action := range written {
		a.get("/api/v1/admin/activity?action="+action).wants(200, "")
		same(t, a.fleet.asked.activities.Action, action, "the filter")
	}
}

func TestActivity_IsReadInPages(t *testing.T) {
	a := newAPI(t)
	for id := range int64(7) {
		a.fleet.lines = append(
			a.fleet.lines,
			telematics.Activity{ID: id + 1, At: now, Actor: telematics.Actor{Role: telematics.Admin}, Action: telematics.StatusRead},
		)
	}
	for _, limit := range []int{1, 3, 7, 8, 200} {
		if seen := pages(a, "/api/v1/admin/activity", limit); len(seen) != 7 || seen[0] != 7.0 || seen[6] != 1.0 {
			t.Errorf("limit %d: entries %v, want 7 to 1", limit, seen)
		}
	}
}

// A + means a space only in a query.
func TestValidation_TimeRuleNamesPlusOnlyInAQuery(t *testing.T) {
	a := newAPI(t)
	const rule = "must be a time such as 2026-01-02T10:00:00Z"
	for _, c := range []struct {
		r     *response
		field string
		want  string
	}{
		{a.get("/api/v1/admin/activity?from=2026-01-02T10:00:00+01:00"), "from", rule + "; in a query, write + as %2B"},
		{a.post("/api/v1/admin/bookings", withJSON(replaceField(newBooking, "end_date", `"tomorrow"`))), "end_date", rule},
	} {
		same(t, c.r.wants(422, "validation_failed").body.Errors[c.field], []string{c.want}, "errors")
	}
}
