package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/httpapi/request"
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

const many = "/api/v1/admin/commands"

func TestBulk_SendsOneActionToManyVehicles(t *testing.T) {
	a := newAPI(t)
	a.controller.start = func(_ context.Context, o delivery.Order) (delivery.Receipt, error) {
		if o.Vehicle == 2 {
			return delivery.Receipt{}, telematics.UnitOffline(telematics.Contact{}, now)
		}
		return delivery.Receipt{Command: new(accepted(o))}, nil
	}
	r := a.post(many, withJSON(`{"action":"attention","vehicle_ids":[42,2,1.0],"parameters":{"signal":"lights"}}`),
		withHeader("Prefer", "wait=5")).wants(202, "")
	id, _ := r.at("id").(string)
	r.heads("Location", many+"?bulk="+id, "Preference-Applied", "wait=5")
	if got := r.at("summary"); fmt.Sprint(got) != "map[executed:0 failed:0 not_executed:1 open:2 total:3 unknown:0]" {
		t.Errorf("summary %v", got)
	}
	items, _ := r.at("items").([]any)
	for i, want := range []struct {
		vehicle float64
		code    string
	}{{42, ""}, {2, "vehicle_offline"}, {1, ""}} {
		item, _ := items[i].(map[string]any)
		failure, _ := item["error"].(map[string]any)
		if item["vehicle_id"] != want.vehicle || (item["command"] == nil) != (want.code != "") ||
			want.code != "" && failure["code"] != want.code {
			t.Errorf("item %d: %v", i, item)
		}
	}
	same(t, a.controller.count(), 3, "orders")
	order := a.controller.last()
	like(t, order, delivery.Order{Bulk: uuid.MustParse(id), Budget: 5 * time.Second}, "order")
	same(t, order.Attention.Signal, telematics.Lights, "signal")
	same(t, order.Idempotency == nil, true, "order without a key")
	stored, _ := a.bulks.Bulk(context.Background(), order.Bulk)
	if len(stored.Items) != 3 || stored.Items[1].Refusal == nil {
		t.Errorf("stored %+v, want 3 items, the second refused", stored)
	}
}

func TestBulk_InvalidOneIsRefusedAndRecorded(t *testing.T) {
	ids := make([]int, 1001)
	for i := range ids {
		ids[i] = i
	}
	tooMany, _ := json.Marshal(ids)
	for body, field := range map[string]string{
		``:              "action",
		`{"action":""}`: "action",
		`{"action":"report-state","vehicle_ids":[1]}`:                                  "action",
		`{"action":"lock"}`:                                                            "vehicle_ids",
		`{"action":"lock","vehicle_ids":[]}`:                                           "vehicle_ids",
		`{"action":"lock","vehicle_ids":["1"]}`:                                        "vehicle_ids",
		`{"action":"lock","vehicle_ids":[1.5]}`:                                        "vehicle_ids",
		`{"action":"lock","vehicle_ids":[1,1]}`:                                        "vehicle_ids",
		`{"action":"lock","vehicle_ids":[1,1.0]}`:                                      "vehicle_ids",
		`{"action":"lock","vehicle_ids":` + string(tooMany) + `}`:                      "vehicle_ids",
		`{"action":"attention","vehicle_ids":[1]}`:                                     "parameters.signal",
		`{"action":"attention","vehicle_ids":[1],"parameters":{}}`:                     "parameters.signal",
		`{"action":"attention","vehicle_ids":[1],"parameters":{"signal":"siren"}}`:     "parameters.signal",
		`{"action":"attention","vehicle_ids":[1],"parameters":{"duration_ms":999999}}`: "parameters.duration_ms",
		`{"action":"lock","vehicle_ids":[1],"parameters":{"signal":"horn"}}`:           "parameters",
		`{"action":"unlock","vehicle_ids":[1],"parameters":{}}`:                        "parameters",
	} {
		a := newAPI(t)
		a.post(many, withJSON(body)).invalid(field)
		a.wantsEntries(logged{Action: "commands.bulk", Code: "validation_failed"})
		same(t, a.controller.count(), 0, "%.80s: orders", body)
	}
	a := newAPI(t)
	r := a.post(many, withJSON(`{"action":"lock","vehicle_ids":[1,1]}`))
	same(t, r.body.Errors["vehicle_ids"], []string{"must contain 1 to 1000 unique ids; each must be an integer"}, "errors")
}

func TestBulk_RepeatedSendsNothing(t *testing.T) {
	a := newAPI(t)
	order := func(body string) *response {
		t.Helper()
		return a.post(many, withJSON(body), keyed("night"))
	}
	first := order(`{"action":"lock","vehicle_ids":[1,2]}`).wants(202, "")
	again := order(`{"action":"lock","vehicle_ids":[1,2]}`).wants(202, "")
	first.has("id", again.at("id")).heads("Idempotency-Replayed", "")
	again.heads("Idempotency-Replayed", "true")
	order(`{"action":"unlock","vehicle_ids":[1,2]}`).wants(422, "idempotency_mismatch")
	same(t, a.controller.count(), 2, "orders")
	same(t, a.bulks.opened, 1, "opened")
	var codes []string
	for _, line := range a.history.all() {
		codes = append(codes, line.Action+" "+string(line.Code))
	}
	if got := strings.Join(codes, ", "); got != "commands.bulk idempotency_replayed, commands.bulk idempotency_mismatch" {
		t.Errorf("audit log entries: %s", got)
	}
}

func TestBulk_IsReadWithItsPresentResults(t *testing.T) {
	a := newAPI(t)
	id := uuid.New()
	b := telematics.Bulk{
		ID: id, Action: telematics.Lock, Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 1},
		Requested: now,
	}
	for i, state := range []telematics.State{telematics.Succeeded, telematics.Rejected, telematics.Failed, telematics.Unknown,
		telematics.Sent, telematics.Expired} {
		c := settled(delivery.Order{Vehicle: telematics.VehicleID(i + 1), Action: telematics.Lock, Bulk: id}, state)
		b.Items = append(b.Items, telematics.BulkItem{Vehicle: c.Vehicle, Command: &c})
	}
	b.Items = append(b.Items, telematics.BulkItem{Vehicle: 90}, telematics.BulkItem{Vehicle: 91, Refusal: telematics.NoSuchVehicle(91)})
	a.bulks.byID[id] = b
	r := a.get(many+"?bulk="+id.String()).wants(200, "")
	assert.Equal(t, fmt.Sprint(r.at("summary")), "map[executed:1 failed:1 not_executed:3 open:2 total:8 unknown:1]", "summary")
	a.get(many+"?bulk="+id.String(), ofAgency(1)).wants(200, "")
	a.get(many+"?bulk="+id.String(), ofAgency(2)).wants(404, "bulk_not_found")
	a.get(many+"?bulk="+uuid.NewString()).wants(404, "bulk_not_found")
	a.get(many+"?bulk=7").wants(422, "validation_failed")
}

func TestBulk_IsRefusedWhileTheRecordIsUnavailable(t *testing.T) {
	a := newAPI(t)
	a.bulks.err = gone{}
	r := a.post(many, withJSON(`{"action":"lock","vehicle_ids":[1,2]}`)).wants(503, "telematics_unavailable")
	r.wantsRetryAfter("5")
	same(t, a.controller.count(), 0, "orders")
	a.wantsEntries(logged{Code: telematics.TelematicsUnavailable})
}

func TestBulk_OutOfTimeReportsVehiclesNotHandled(t *testing.T) {
	var ids []string
	for n := range 1000 {
		ids = append(ids, fmt.Sprint(n+1))
	}
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t)
		a.controller.start = func(_ context.Context, o delivery.Order) (delivery.Receipt, error) {
			time.Sleep(telematics.BulkFor / 4) // a slow record
			return delivery.Receipt{Command: new(accepted(o))}, nil
		}
		r := a.post(many, withJSON(`{"action":"lock","vehicle_ids":[`+strings.Join(ids, ",")+`]}`)).wants(202, "")
		id := must(uuid.Parse(fmt.Sprint(r.at("id"))))
		asked := a.controller.count()
		left := len(ids) - asked
		if asked == 0 || left == 0 {
			t.Fatalf("%d of %d vehicles were handled, want some, not all", asked, len(ids))
		}
		if got := r.at("summary", "not_executed"); got != float64(left) {
			t.Errorf("the summary has %v not executed, want the %d not handled", got, left)
		}
		if b, _ := a.bulks.Bulk(t.Context(), id); len(b.Items) != len(ids) {
			t.Errorf("%d items are stored, want %d", len(b.Items), len(ids))
		}
		recorded := 0
		for _, line := range a.history.all() {
			if line.Action == "command.lock" && line.Outcome == telematics.NotExecuted && line.Code == telematics.TelematicsUnavailable {
				recorded++
			}
		}
		same(t, recorded, left, "the audit log")
	})
}

func TestBulk_HasOneEntryForAllUnknownVehicles(t *testing.T) {
	a := newAPI(t)
	a.controller.start = func(_ context.Context, o delivery.Order) (delivery.Receipt, error) {
		if o.Vehicle > 100 {
			return delivery.Receipt{}, telematics.NoSuchVehicle(o.Vehicle)
		}
		return delivery.Receipt{Command: new(accepted(o))}, nil
	}
	a.post(many, withJSON(`{"action":"lock","vehicle_ids":[`+numbers(80, 1000)+`]}`), ofAgency(1)).wants(202, "")
	lines := a.history.all()
	if len(lines) != 1 {
		t.Fatalf("%d entries, want 1", len(lines))
	}
	line := lines[0]
	like(t, line, logged{Action: "command.lock", Code: telematics.VehicleNotFound,
		Outcome: telematics.NotExecuted, Agency: 1}, "entry")
	same(t, line.Vehicle, 0, "vehicle")
	first, _ := line.Details["vehicle_ids"].([]telematics.VehicleID)
	if line.Details["unknown_vehicles"] != 979 || len(first) != 20 || first[0] != 101 {
		t.Errorf("details %v, want 979 unknown vehicles and the first 20", line.Details)
	}
}

// numbers returns count integers from first, separated by commas.
func numbers(first, count int) string {
	var list []string
	for i := range count {
		list = append(list, fmt.Sprint(first+i))
	}
	return strings.Join(list, ",")
}

func TestBulk_CountsItsVehiclesAgainstTheLimit(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Bulk: 15, Admin: 600})
	order := func(count int, change ...func(*http.Request)) *response {
		return a.post(
			many,
			append(changes{withJSON(`{"action":"lock","vehicle_ids":[` + numbers(1, count) + `]}`)}, change...)...)
	}
	key := keyed("k")
	order(10, key).wants(202, "").wantsQuota("15", "5", "6")
	order(10, key).wants(202, "") // a repetition is not counted
	a.history.lines = nil
	r := order(6).wants(429, "rate_limited").wantsRetryAfter("3")
	r.says("Your limit of 15 vehicles a minute, in orders to many, has fewer than 6 left; nothing was sent. Try again in 3 seconds.")
	a.wantsEntries(logged{Action: "commands.bulk", Code: "rate_limited"})
	order(5).wants(202, "").wantsQuota("15", "0", "6")
	// Another agency's limit.
	order(5, ofAgency(1)).wants(202, "")
	a.get("/api/v1/admin/vehicles/42").wants(200, "").wantsQuota("600", "595", "6")
}

func TestBulkCommands_AreListedNewestFirst(t *testing.T) {
	a := newAPI(t)
	const list = "/api/v1/admin/bulk-commands"
	a.get(list).wants(200, "").says("0 bulk commands.").lists(0)
	var ids []any
	for _, agency := range []telematics.AgencyID{1, 2, 1} {
		b := telematics.Bulk{
			ID: uuid.Must(uuid.NewV7()), Action: telematics.Lock, Vehicles: []telematics.VehicleID{1, 2},
			Actor: telematics.Actor{Subject: "zoe", Role: telematics.Admin, Agency: agency}, Requested: now,
		}
		a.bulks.byID[b.ID] = b
		ids = append(ids, b.ID.String())
	}
	r := a.get(list+"?limit=2").wants(200, "").lists(2).has(
		"0.id", ids[2], "1.id", ids[1], "0.requested_by", "zoe", "0.action", "lock", "0.summary.total", 2.0, "0.summary.executed", 2.0,
	)
	cursor, _ := r.body.Meta["next_cursor"].(string)
	a.get(list+"?cursor="+cursor).wants(200, "").lists(1).has("0.id", ids[0]).meta("next_cursor", nil)
	a.get(list, ofAgency(1)).wants(200, "").lists(2).has("1.id", ids[0])
	a.get(list + "?cursor=x").invalid("cursor")
	a.wantsEntries()
	a.bulks.err = gone{}
	a.get(list).wants(503, "service_unavailable")
}
