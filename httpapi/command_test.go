package httpapi_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestCommand_IsReadByID(t *testing.T) {
	a := newAPI(t)
	late := settled(
		delivery.Order{Vehicle: 42, Action: telematics.Unlock, Actor: telematics.Actor{Subject: "admin-7"}},
		telematics.Succeeded,
	)
	late.Late, late.Reason = true, ""
	a.fleet.commands = []telematics.Command{late}
	r := a.get("/api/v1/admin/commands/"+late.ID.String()).wants(200, "")
	r.has("late", true, "state", "succeeded").says("The command succeeded.")
	a.get("/api/v1/admin/commands/"+late.ID.String(), ofAgency(2)).wants(404, "command_not_found")
	a.get("/api/v1/admin/commands/"+uuid.NewString()).wants(404, "command_not_found")
}

func TestCommands_OfAVehicleAreListedNewestFirst(t *testing.T) {
	a := newAPI(t)
	for seq := range int64(5) {
		c := settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, telematics.Succeeded)
		c.ID, c.Seq = uuid.New(), seq+1
		if seq == 1 {
			c.Agency = 2 // of a time when the vehicle belonged to another agency
		}
		a.fleet.commands = append(a.fleet.commands, c)
	}
	seen := pages(a, "/api/v1/admin/vehicles/42/commands", 2)
	if len(seen) != 5 || seen[0] != a.fleet.commands[4].ID.String() || seen[4] != a.fleet.commands[0].ID.String() {
		t.Errorf("IDs %v, want the newest first", seen)
	}
	same(t, len(pages(a, "/api/v1/admin/vehicles/42/commands", 2, ofAgency(1))), 4, "an agency gets")
	a.get("/api/v1/admin/vehicles/77/commands").wants(404, "vehicle_not_found")
}

func TestCommands_OfTheFleetAreListedNewestFirst(t *testing.T) {
	a := newAPI(t)
	for n := range 5 {
		c := settled(delivery.Order{Vehicle: telematics.VehicleID(n + 1), Action: telematics.Lock}, telematics.Succeeded)
		c.ID, c.Reported = uuid.Must(uuid.NewV7()), nil
		if n == 1 {
			c.Agency = 2
		}
		a.fleet.commands = append(a.fleet.commands, c)
	}
	seen := pages(a, "/api/v1/admin/commands", 2)
	if len(seen) != 5 || seen[0] != a.fleet.commands[4].ID.String() || seen[4] != a.fleet.commands[0].ID.String() {
		t.Errorf("IDs %v, want the newest first", seen)
	}
	same(t, len(pages(a, "/api/v1/admin/commands", 2, ofAgency(1))), 4, "an agency gets")
	a.get("/api/v1/admin/commands?agency_id=2", ofAgency(1)).wants(200, "").lists(0)
	a.wantsEntries()
	a.fleet.commands[0] = settled(delivery.Order{Vehicle: 1, Action: telematics.Lock}, telematics.Succeeded)
	entry := a.added(func() { a.get("/api/v1/admin/commands?actor=eva&state=succeeded").wants(200, "") })
	if want := map[string]any{
		"filter": map[string]any{"actor": "eva", "state": "succeeded"}, "vehicles": 1,
	}; entry.Action != "commands.read" ||
		!reflect.DeepEqual(entry.Details, want) {
		t.Errorf("entry %+v", entry)
	}
}

func TestCommands_FiltersNarrowTheListTogether(t *testing.T) {
	a := newAPI(t)
	for query, want := range map[string]telematics.CommandQuery{
		"":                                     {},
		"?vehicle_id=42&actor=eva":             {Vehicle: 42, Actor: "eva"},
		"?state=accepted,sent":                 {States: []telematics.State{telematics.Accepted, telematics.Sent}},
		"?outcome=not_executed":                {States: []telematics.State{telematics.Rejected, telematics.Expired}},
		"?state=rejected&outcome=not_executed": {States: []telematics.State{telematics.Rejected}},
		"?state=sent&outcome=executed":         {States: []telematics.State{}},
		"?agency_id=2&from=2026-01-02T10:00:00Z&to=2026-01-03T10:00:00.5%2B01:00": {
			Agency: 2, From: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 3, 9, 0, 0, 5e8, time.UTC),
		},
	} {
		a.get("/api/v1/admin/commands"+query).wants(200, "")
		got := a.fleet.asked.commands
		same(t, got.Limit, 51, "%s: limit", query)
		got.Limit, got.From, got.To = 0, got.From.UTC(), got.To.UTC()
		same(t, got, want, "%s", query)
	}
	bulk := uuid.NewString()
	for _, query := range []string{
		"?state=", "?state=lies", "?state=sent,", "?outcome=open", "?vehicle_id=0", "?vehicle_id=x", "?actor=", "?from=yesterday",
		"?to=1", "?limit=0", "?bulk=",
		"?cursor=YWN0aXZpdHk6MQ", "?cursor=x", "?bulk=" + bulk + "&state=sent", "?bulk=" + bulk + "&agency_id=1",
		"?vehicle_id=1&vehicle_id=2",
	} {
		a.get("/api/v1/admin/commands"+query).wants(422, "validation_failed")
	}
	a.fleet.err = gone{}
	a.get("/api/v1/admin/commands").wants(503, "service_unavailable")
}
