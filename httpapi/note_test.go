package httpapi_test

import (
	"strings"
	"testing"

	"motorpool/rental"
	"motorpool/telematics"
)

// keepNotes lets the store return what was recorded.
func keepNotes(a *api) {
	a.fleet.lines = nil
	for i, line := range a.history.all() {
		line.ID = int64(i + 1)
		a.fleet.lines = append(a.fleet.lines, line)
	}
}

func TestNotes_AreEntriesOfTheAuditLog(t *testing.T) {
	a := newBookingAPI(t)
	const ofVehicle, ofBooking = "/api/v1/admin/vehicles/42/notes", "/api/v1/admin/bookings/43/notes"
	a.post(ofVehicle, withJSON(`{"text":"The spare key\nis in the depot."}`), ofAgency(1)).wants(201, "").has(
		"text", "The spare key\nis in the depot.", "by", "admin-of-agency", "vehicle_id", 42.0, "booking_id", nil,
		"at", "2026-01-02T10:00:00.250Z",
	)
	a.post(ofBooking, withJSON(`{"text":"Comes an hour later."}`)).wants(201, "").has("vehicle_id", 42.0, "booking_id", 43.0)
	a.wantsEntries(
		logged{
			Action: telematics.NoteAdd, Outcome: telematics.Executed, Vehicle: 42, Agency: 1, Note: "The spare key\nis in the depot.",
		},
		logged{Action: telematics.NoteAdd, Outcome: telematics.Executed, Vehicle: 42, Agency: 1, Booking: 43, Note: "Comes an hour later."},
	)
	keepNotes(a.api)
	a.get(ofVehicle, ofAgency(1)).wants(200, "").says("2 notes.").lists(2).has("0.text", "Comes an hour later.", "1.booking_id", nil)
	same(t, a.fleet.asked.activities, telematics.ActivityQuery{
		Agency: 1, Vehicle: 42, Action: telematics.NoteAdd, Outcome: telematics.Executed, Page: telematics.Page{Limit: 51},
	}, "query")
	a.get(ofBooking+"?limit=1").wants(200, "").lists(1)
	same(t, a.fleet.asked.activities, telematics.ActivityQuery{
		Booking: 43, Action: telematics.NoteAdd, Outcome: telematics.Executed, Page: telematics.Page{Limit: 2},
	}, "query")
}

func TestNotes_RefusalsAreRecorded(t *testing.T) {
	a := newBookingAPI(t)
	for target, code := range map[string]telematics.Code{
		"/api/v1/admin/vehicles/9/notes": telematics.VehicleNotFound, "/api/v1/admin/bookings/45/notes": rental.BookingNotFound,
	} {
		a.get(target, ofAgency(1)).wants(404, string(code))
		a.post(target, withJSON(`{"text":"Scratched."}`), ofAgency(1)).wants(404, string(code))
		like(t, a.lastEntry(), logged{Action: telematics.NoteAdd, Code: code, Outcome: telematics.NotExecuted, Agency: 1}, "entry")
	}
	for _, text := range []string{`null`, `""`, `"  \n"`, `"\u200b"`, `"a\u0000b"`, `7`, `"` + strings.Repeat("x", 2001) + `"`} {
		a.post("/api/v1/admin/vehicles/42/notes", withJSON(`{"text":`+text+`}`)).invalid("text")
	}
	a.history.err = gone{}
	a.post("/api/v1/admin/vehicles/42/notes", withJSON(`{"text":"Scratched."}`)).wants(503, "service_unavailable")
}
