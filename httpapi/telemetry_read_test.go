package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// added returns the one entry that a request adds to the audit log.
func (a *api) added(request func()) telematics.Activity {
	a.t.Helper()
	before := len(a.history.all())
	request()
	entries := a.history.all()[before:]
	if len(entries) != 1 {
		a.t.Fatalf("%d entries, want 1: %+v", len(entries), entries)
	}
	return entries[0]
}

func TestVehiclesRead_OneEntryPerRequest(t *testing.T) {
	a := newAPI(t)
	all, own := func(*http.Request) {}, ofAgency(1)
	for _, c := range []struct {
		query  string
		as     func(*http.Request)
		agency telematics.AgencyID
		filter map[string]any
		n      int
	}{
		{"", all, 0, map[string]any{}, 4},
		{"?limit=1", all, 0, map[string]any{}, 1},
		{"?agency_id=2&status=available&connectivity=online&q=golf%25", all, 2,
			map[string]any{"agency_id": int64(2), "status": "available", "connectivity": "online", "q": "golf%"}, 1},
		{"", own, 1, map[string]any{"agency_id": int64(1)}, 3},
		{"?agency_id=2", own, 1, map[string]any{"agency_id": int64(2)}, 0},
	} {
		var r *response
		entry := a.added(func() { r = a.get("/api/v1/admin/vehicles"+c.query, c.as).wants(200, "") })
		like(t, entry, logged{Action: "vehicles.read", Outcome: telematics.Executed, Agency: c.agency}, "entry")
		same(t, entry.Vehicle, 0, "%v: vehicle", c.query)
		same(t, entry.RequestID.String(), r.body.RequestID, "%v: request ID", c.query)
		same(t, entry.Details, map[string]any{"filter": c.filter, "vehicles": c.n}, "%s: details", c.query)
	}
	a.get("/api/v1/admin/vehicles?status=flying").wants(422, "validation_failed")
	same(t, len(a.history.all()), 5, "entries")
}

func TestCommandsRead_IsRecordedForReportedValues(t *testing.T) {
	a := newAPI(t)
	plain := settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, telematics.Unknown)
	plain.ID, plain.Reported, plain.Seq = uuid.New(), nil, 1
	a.fleet.commands = []telematics.Command{plain}
	a.get("/api/v1/admin/commands/"+plain.ID.String()).wants(200, "")
	a.get("/api/v1/admin/vehicles/42/commands").wants(200, "")
	if entries := a.history.all(); len(entries) != 0 {
		t.Fatalf("commands without reported values were recorded as read: %+v", entries)
	}
	reporting := settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, telematics.Succeeded)
	reporting.ID, reporting.Seq = uuid.New(), 2
	a.fleet.commands = append(a.fleet.commands, reporting)
	one := a.added(func() { a.get("/api/v1/admin/commands/"+reporting.ID.String()).wants(200, "") })
	like(t, one, logged{Action: "commands.read", Vehicle: 42, Agency: 1, Command: reporting.ID,
		Details: map[string]any{"vehicles": 1}}, "one")
	list := a.added(func() { a.get("/api/v1/admin/vehicles/42/commands").wants(200, "") })
	like(t, list, logged{Action: "commands.read", Vehicle: 42, Agency: 1,
		Details: map[string]any{"vehicles": 1}}, "entry of the list")
	same(t, list.Command, telematics.NoCommand, "command")
	other := reporting
	other.Vehicle = 2
	b := telematics.Bulk{
		ID: uuid.New(), Action: telematics.Lock,
		Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 1}, Requested: now,
		Items: []telematics.BulkItem{
			{Vehicle: 42, Command: &reporting},
			{Vehicle: 2, Command: &other},
			{Vehicle: 1, Command: &plain},
			{Vehicle: 9, Refusal: telematics.NoUnit()},
		},
	}
	a.bulks.byID[b.ID] = b
	many := a.added(func() {
		a.get("/api/v1/admin/commands?bulk="+b.ID.String(), ofAgency(1)).wants(200, "")
	})
	like(t, many, logged{Action: "commands.read", Agency: 1, Details: map[string]any{"bulk": b.ID.String(),
		"vehicles": 2}}, "entry of the bulk")
	same(t, many.Vehicle, 0, "vehicle")
	same(t, len(a.history.all()), 3, "entries")
}

func TestReadThatCannotBeRecorded_IsNotAnswered(t *testing.T) {
	m := newTelemetry()
	a := newAPI(t, with(m))
	c := settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, telematics.Succeeded)
	a.fleet.commands = []telematics.Command{c}
	b := telematics.Bulk{ID: uuid.New(), Items: []telematics.BulkItem{{Vehicle: 42, Command: &c}}}
	a.bulks.byID[b.ID] = b
	for _, path := range []string{
		"vehicles", "vehicles/42/commands", "commands/" + c.ID.String(), "commands?bulk=" + b.ID.String(), "vehicles/42/status", "fleet",
		"units", "vehicles/42/history",
	} {
		a.history.err = gone{}
		if r := a.get("/api/v1/admin/"+path).wants(503, "service_unavailable"); strings.Contains(r.text, "is_locked") {
			t.Errorf("%s: %s", path, r.text)
		}
		a.history.err = errors.New("x")
		a.get("/api/v1/admin/"+path).wants(500, "internal")
	}
	same(t, len(m.asked), 0, "reads of the history")
}

func TestEventsRead_EntryHasTheFilterAndTheNumberOfVehicles(t *testing.T) {
	for _, c := range []struct {
		query   string
		filter  map[string]any
		n       int
		foreign bool
	}{
		{"", map[string]any{}, 4, false},
		{"?agency_id=2", map[string]any{"agency_id": int64(2)}, 1, false},
		{"?vehicle_id=42&event=status,presence", map[string]any{"vehicle_id": int64(42),
			"event": []telematics.EventKind{"status", "presence"}}, 1, false},
		{"?vehicle_id=77", map[string]any{"vehicle_id": int64(77)}, 0, false},
		{"?agency_id=2", map[string]any{"agency_id": int64(2)}, 0, true},
	} {
		l := newLive(t, brokertest.NewEvents())
		var change changes
		if c.foreign {
			change = append(change, ofAgency(1))
		}
		l.follow(c.query, change...).awaitBegin(t)
		l.wantsEntries(logged{Action: "events.read", Details: map[string]any{"filter": c.filter, "vehicles": c.n}})
	}
}
