package httpapi_test

import (
	"net/http"
	"testing"

	"motorpool/rental"
	"motorpool/telematics"
)

const tariffs1 = "/api/v1/admin/agencies/1/tariffs"

func TestTariff_SetReadAndRemoved(t *testing.T) {
	a := newAPI(t)
	const body = `{"per_minute": 0.30, "deposit": null, "plugged_in": false}`
	r := a.do(http.MethodPut, tariffs1+"/compact%20SUV", withJSON(body)).wants(200, "")
	same(t, r.data(), `{"category":"compact SUV","version":1,"currency":"EUR","per_minute":0.30,"per_hour":null,"per_day":null,`+
		`"per_km":null,"included_km":0,"per_pause_minute":null,"per_reservation_minute":null,"free_reservation_minutes":0,`+
		`"minimum":null,"deposit":null,"plugged_in":false,"description":"0.30 EUR a minute"}`, "the tariff")
	same(t, len(r.body.Meta["changes"].([]any)), 1, "changes")
	e := a.fleet.edited[0]
	if string(e.Fields) != `{"tariffs":{"compact SUV":{"per_minute":0.30,"deposit":null,"plugged_in":false}}}` || e.Agency != 1 ||
		e.Entry.Action != rental.TariffChange || e.Entry.Agency != 1 {
		t.Errorf("edit %+v with the fields %s", e, e.Fields)
	}
	same(t, a.get(tariffs1+"/compact%20SUV").wants(200, "").data(), r.data(), "the tariff")
	same(t, a.get(tariffs1).wants(200, "").data(), "["+r.data()+"]", "the tariffs")
	a.get(tariffs1+"/van").wants(404, "tariff_not_found")
	a.do(http.MethodDelete, tariffs1+"/compact%20SUV").wants(200, "")
	same(t, string(a.fleet.edited[1].Fields), `{"tariffs":{"compact SUV":null}}`, "fields")
	a.do(http.MethodDelete, tariffs1+"/compact%20SUV").wants(404, "tariff_not_found")
	a.wantsEntries(logged{
		Action: rental.TariffChange, Agency: 1, Code: rental.TariffNotFound, Outcome: telematics.NotExecuted,
		Actor: telematics.Actor{Subject: e.Entry.Actor.Subject},
	})
	same(t, a.get(tariffs1).wants(200, "").data(), "[]", "the tariffs")
}

// The name of the empty category is default; a slash in a category is a part of it, and letters are
// composed as on record.
func TestTariff_Categories(t *testing.T) {
	a := newAPI(t)
	a.fleet.plans = []rental.Plan{
		{Version: 4, Hour: 900}, {Category: "a/b", Version: 1, Day: 5000}, {Category: "Ünimog", Version: 1, Day: 5000},
	}
	a.get(tariffs1+"/default").wants(200, "").has("category", "default", "version", 4.0, "description", "9.00 EUR an hour")
	a.get(tariffs1+"/a%2Fb").wants(200, "").has("category", "a/b")
	a.get(tariffs1+"/U%CC%88nimog").wants(200, "").has("category", "Ünimog") // decomposed
}

func TestRentalRules_AreReadAndSetAsAWhole(t *testing.T) {
	a := newAPI(t)
	const path = "/api/v1/admin/agencies/1/rental-rules"
	const usual = `{"max_distance_m":0,"return_to":"anywhere","station_radius_m":150,"return_doors":true,"return_windows":true,` +
		`"return_trunk":true,"return_key":null,"charge_at_start":"estimate","max_open_bookings":5,"max_unpaid":1,"hold_minutes":15,` +
		`"no_show_minutes":0,"min_length_minutes":15,"position_decimals":4,"min_energy_percent":10}`
	same(t, a.get(path).wants(200, "").data(), usual, "the rules")
	same(t, a.do(http.MethodPut, path, withJSON(`{"hold_minutes": 20, "return_key": null}`)).wants(200, "").data(), usual, "the rules")
	if e := a.fleet.edited[0]; string(e.Fields) != `{"rental_rules":{"hold_minutes":20,"return_key":null}}` || e.Agency != 1 ||
		e.Entry.Action != rental.RulesChange {
		t.Errorf("edit %+v with the fields %s", e, e.Fields)
	}
}

func TestTariff_Refusals(t *testing.T) {
	a := newAPI(t)
	ofOne := claiming(claimSet{"agency_id": 1, "scope": nil})
	const rules = "/api/v1/admin/agencies/1/rental-rules"
	for path, bodies := range map[string][]string{
		tariffs1 + "/van": {`{"per_mile": 1}`, `{"per_minute": "1"}`, `[]`}, rules: {`{"return_to": "home"}`, `{"hold_minutes": -1}`},
	} {
		for _, body := range bodies {
			a.do(http.MethodPut, path, ofOne, withJSON(body)).wants(422, "validation_failed")
		}
	}
	a.get("/api/v1/admin/agencies/3/tariffs").wants(404, "agency_not_found")
	same(t, len(a.fleet.edited), 0, "edits")
	for i, nothing := range []string{``, `null`, ` null `, `{}`} { // never null, which removes
		a.do(http.MethodPut, tariffs1+"/van", ofOne, withJSON(nothing))
		same(t, string(a.fleet.edited[i].Fields), `{"tariffs":{"van":{}}}`, "fields")
	}
	a.fleet.err = &rental.FieldError{Field: "per_hour", Message: "is not valid: limits nothing: an hour of per_minute costs no more"}
	a.do(http.MethodPut, tariffs1+"/van", ofOne, withJSON(`{"per_minute": 0.30, "per_hour": 18}`)).wants(422, "validation_failed").
		says("The request is not valid: per_hour is not valid: limits nothing: an hour of per_minute costs no more.")
	entries := a.history.all()
	last := entries[len(entries)-1]
	if last.Action != rental.TariffChange || last.Agency != 1 || last.Outcome != telematics.NotExecuted {
		t.Errorf("entry %+v", last)
	}
}
