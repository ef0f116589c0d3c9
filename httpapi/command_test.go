package httpapi_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestACommandCanBeLookedUp(t *testing.T) {
	a := newAPI(t)
	late := settled(delivery.Order{Vehicle: 42, Action: telematics.Unlock, Actor: telematics.Actor{Subject: "admin-7"}}, telematics.Succeeded)
	late.Late, late.Reason = true, ""
	a.fleet.commands = []telematics.Command{late}
	r := a.get("/api/v1/admin/commands/"+late.ID.String()).wants(200, "")
	if r.at("late") != true || r.at("state") != "succeeded" || r.body.Message != "The command is succeeded." {
		t.Errorf("command %s", r.text)
	}
	a.get("/api/v1/admin/commands/"+late.ID.String(), withToken(agencyToken(t, 2))).wants(404, "command_not_found")
	a.get("/api/v1/admin/commands/"+uuid.NewString()).wants(404, "command_not_found")
}

func TestAnOpenCommandHasNoOutcomeYet(t *testing.T) {
	a := newAPI(t)
	open := telematics.Command{ID: uuid.New(), Vehicle: 42, Agency: 1, Action: telematics.Lock, State: telematics.Accepted, Requested: now, Deadline: now.Add(time.Second)}
	a.fleet.commands = []telematics.Command{open}
	r := a.get("/api/v1/admin/commands/" + open.ID.String())
	for _, name := range []string{"outcome", "sent_at", "received_at", "completed_at", "latency_ms", "reported", "reason"} {
		if got := r.at(name); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAVehiclesCommandsAreListedNewestFirst(t *testing.T) {
	a := newAPI(t)
	for seq := range int64(5) {
		c := settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, telematics.Succeeded)
		c.ID, c.Seq = uuid.New(), seq+1
		if seq == 1 {
			c.Agency = 2 // from when the vehicle was another agency's
		}
		a.fleet.commands = append(a.fleet.commands, c)
	}
	seen := pages(a, "/api/v1/admin/vehicles/42/commands", 2)
	if len(seen) != 5 || seen[0] != a.fleet.commands[4].ID.String() || seen[4] != a.fleet.commands[0].ID.String() {
		t.Errorf("ids %v", seen)
	}
	if own := pages(a, "/api/v1/admin/vehicles/42/commands", 2, withToken(agencyToken(t, 1))); len(own) != 4 {
		t.Errorf("an agency sees %d commands, want its 4", len(own))
	}
	a.get("/api/v1/admin/vehicles/77/commands").wants(404, "vehicle_not_found")
}
