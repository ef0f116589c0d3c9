package httpapi_test

import (
	"fmt"
	"testing"

	"motorpool/httpapi"
	"motorpool/telematics"
)

// placeNames returns an address made of the agency and the position.
type placeNames struct{}

func (placeNames) Address(agency telematics.AgencyID, p telematics.Position, stands bool) string {
	if agency == 2 {
		return ""
	}
	return fmt.Sprintf("agency %d at %g, %g", agency, p.Latitude, p.Longitude)
}

func TestAddress_IsInTheStatusAndTheList(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) { c.Places = placeNames{} })
	located := func(t *telematics.Twin) { t.Snapshot = reported(now, everything) }
	// Vehicle 1 has never reported a position.
	for id, agency := range map[telematics.VehicleID]telematics.AgencyID{2: 1, 42: 1, 9: 2} {
		a.fleet.twins[id] = twin(id, agency, located)
	}
	const where = "agency 1 at 48.1371, 11.5754"
	for vehicle, want := range map[string]any{"42": where, "9": nil, "1": nil} {
		r := a.get("/api/v1/admin/vehicles/" + vehicle + "/status")
		same(t, r.at("location", "address"), want, "vehicle %s has the address", vehicle)
	}
	list := a.get("/api/v1/admin/vehicles")
	for _, item := range list.body.Data.([]any) {
		vehicle := item.(map[string]any)
		want := map[float64]any{42: where, 2: where}[vehicle["id"].(float64)]
		if got := vehicle["location"].(map[string]any)["address"]; got != want {
			t.Errorf("in the list, vehicle %v has the address %v, want %v", vehicle["id"], got, want)
		}
	}
}
