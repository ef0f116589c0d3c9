package httpapi_test

import (
	"testing"

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
