package httpapi_test

import (
	"net/http"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/telematics"
)

func TestAgenciesAndStations_AreListedByDescendingID(t *testing.T) {
	a := newAPI(t)
	a.fleet.agencies = []telematics.ListedAgency{
		{
			Agency: telematics.Agency{ID: 1, Code: "MUC", Name: "Munich"}, Vehicles: 3, Stations: 1,
		},
		{Agency: telematics.Agency{ID: 2, Code: "BER", Name: "Berlin"}, Vehicles: 1},
	}
	a.fleet.stations = []telematics.Station{
		{
			ID: 5, AgencyID: 1, Name: "Ost", Address: "Orleansplatz 1", Latitude: 48.1, Longitude: 11.6,
		},
		{ID: 6, AgencyID: 2, Name: "Zoo", Address: "Hardenbergplatz 1", Latitude: 52.5, Longitude: 13.3},
	}
	munich := map[string]any{"id": 1.0, "code": "MUC", "name": "Munich", "vehicles": 3.0, "stations": 1.0}
	berlin := map[string]any{"id": 2.0, "code": "BER", "name": "Berlin", "vehicles": 1.0, "stations": 0.0}
	east := map[string]any{"id": 5.0, "agency_id": 1.0, "name": "Ost", "address": "Orleansplatz 1", "latitude": 48.1, "longitude": 11.6}
	zoo := map[string]any{"id": 6.0, "agency_id": 2.0, "name": "Zoo", "address": "Hardenbergplatz 1", "latitude": 52.5, "longitude": 13.3}
	for path, want := range map[string][]any{"/api/v1/admin/agencies": {berlin, munich}, "/api/v1/admin/stations": {zoo, east}} {
		all := a.get(path).wants(200, "")
		all.has("", any(want)).meta("next_cursor", nil)
		first := a.get(path+"?limit=1").wants(200, "")
		cursor, _ := first.body.Meta["next_cursor"].(string)
		a.get(path+"?limit=1&cursor="+cursor).wants(200, "").has("", any(want[1:]))
		a.get(path, ofAgency(1)).wants(200, "").has("", any(want[1:]))
		a.get(path+"?agency_id=2", ofAgency(1)).wants(200, "").lists(0)
		a.get(path+"?cursor=x").wants(422, "validation_failed")
	}
	a.wantsEntries()
}

func TestAgencyKeys_AreAdministeredWithTheirScope(t *testing.T) {
	const keys = "/api/v1/admin/agencies/1/keys"
	a := newAPI(t)
	token := withScopes(t, 1, "agency_keys")
	a.get(keys, token).wants(200, "").lists(1).hides("secret")
	if r := a.post(keys, token).wants(201, ""); r.at("id") != "ak_new" || len(r.at("secret").(string)) != 64 {
		t.Errorf("added key: %s, want its id and secret", r.text)
	}
	a.post(keys+"/ak_1/retire", token, withJSON(`{"until":"2026-02-01T00:00:00Z"}`)).
		wants(200, "").has("state", "retiring", "retires_at", "2026-02-01T00:00:00.000Z")
	for _, body := range []string{`{}`, `{"until":"2026-01-01T00:00:00Z"}`, `{"until":"soon"}`, `{"until":"2026-02-01T00:00:00Z","at":1}`} {
		a.post(keys+"/ak_1/retire", token, withJSON(body)).wants(422, "validation_failed")
	}
	a.post(keys+"/ak_1/revoke", token).wants(200, "").has("state", "revoked")
	a.post(keys+"/ak_2/revoke", token).wants(404, "agency_key_not_found") // a key of another agency
	a.get("/api/v1/admin/agencies/0/keys", token).wants(404, "agency_not_found")
	everywhere := withScopes(t, nil, "all_agencies agency_keys")
	a.get("/api/v1/admin/agencies/3/keys", everywhere).wants(404, "agency_not_found")
	a.post("/api/v1/admin/agencies/3/keys", everywhere).wants(404, "agency_not_found")
	a.fleet.agencies = []telematics.ListedAgency{{Agency: telematics.Agency{ID: 3, Code: "NEW", Name: "New"}}}
	a.get("/api/v1/admin/agencies/3/keys", everywhere).wants(200, "").says("0 keys.")
	late := logged{Action: rental.AgencyKeyRetire, Code: "validation_failed"}
	a.wantsEntries(late, late, late, late, logged{Action: rental.AgencyKeyRevoke, Code: "agency_key_not_found"},
		logged{Action: rental.AgencyKeyAdd, Code: "agency_not_found"})
}

// Keys are never deleted, not even revoked ones, and each instance reads all of them, so the store
// limits their number per day.
func TestAgencyKeys_AreLimitedPerDay(t *testing.T) {
	a := newAPI(t)
	a.agencyKeys.err = rental.ErrKeysUsedUp
	a.post("/api/v1/admin/agencies/1/keys", withScopes(t, 1, "agency_keys")).wants(429, "rate_limited")
}

func TestChanges_AreAnsweredWhenEachInstanceAppliesThem(t *testing.T) {
	const within = 20 * time.Millisecond
	everything := withScopes(t, nil, "all_agencies halt agency_keys")
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPut, haltsPath, `{"reason":"recall"}`},
		{http.MethodPost, "/api/v1/admin/agencies/1/keys", ""},
		{http.MethodPost, "/api/v1/admin/agencies/1/keys/ak_1/retire", `{"until":"2026-02-01T00:00:00Z"}`},
		{http.MethodPost, "/api/v1/admin/agencies/1/keys/ak_1/revoke", ""},
		{http.MethodPut, centre, operating},
	} {
		a := newAPI(t, func(c *httpapi.Config) { c.HaltWithin, c.KeysWithin, c.AreasWithin = within, within, within })
		began := time.Now()
		if r := a.do(c.method, c.path, everything, withJSON(c.body)); r.status/100 != 2 || time.Since(began) < within {
			t.Errorf("%s %s: %d after %v, want success after %v", c.method, c.path, r.status, time.Since(began), within)
		}
	}
}
