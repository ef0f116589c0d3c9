package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/telematics"
)

// areaRegistry has the areas of agency 1 in memory; agency 2 has none, and there is no other.
type areaRegistry struct {
	byName  map[string]areas.Placed
	changes []areas.Change
	err     error
}

func (r *areaRegistry) List(_ context.Context, agency telematics.AgencyID, name string) ([]areas.Placed, error) {
	list := []areas.Placed{}
	for _, key := range slices.Sorted(maps.Keys(r.byName)) {
		if agency == 1 && (name == "" || name == key) {
			list = append(list, r.byName[key])
		}
	}
	if agency > 2 {
		return nil, telematics.NoSuchAgency(agency)
	}
	return list, r.err
}

func (r *areaRegistry) Put(_ context.Context, c areas.Change) (placed areas.Placed, added bool, err error) {
	r.changes = append(r.changes, c)
	was, known := r.byName[c.Name]
	switch {
	case c.Agency > 2:
		return placed, false, telematics.NoSuchAgency(c.Agency)
	case r.err != nil:
		return placed, false, r.err
	case !known && c.Shape == nil:
		return placed, false, rental.NoSuchArea(c.Agency, c.Name)
	case c.Version != "" && c.Version != was.Version.String():
		return placed, false, &telematics.Error{Code: rental.AreaChanged, Message: "changed"}
	case c.Shape == nil:
		delete(r.byName, c.Name)
		return placed, false, nil
	}
	placed = areas.Placed{Area: c.Area, Shape: *c.Shape, Version: uuid.New(), Changed: now}
	r.byName[c.Name] = placed
	return placed, !known, nil
}

const (
	areasOfOne = "/api/v1/admin/agencies/1/areas"
	centre     = areasOfOne + "/centre"
	ring       = `[[11.5,48.1],[11.6,48.1],[11.6,48.2],[11.5,48.1]]`
	triangle   = `{"type":"Polygon","coordinates":[` + ring + `]}`
	operating  = `{"kind":"operating","geometry":` + triangle + `}`
)

func (a *api) put(target, body string, change ...func(*http.Request)) *response {
	a.t.Helper()
	return a.do(http.MethodPut, target, append(change, withJSON(body))...)
}

func TestAreas_AreAddedReadChangedAndRemoved(t *testing.T) {
	a := newAPI(t)
	a.get(areasOfOne).wants(200, "").lists(0)
	added := a.put(centre, operating).wants(201, "").heads("Location", centre).has(
		"name", "centre", "kind", "operating", "points", 4.0, "changed_at", "2026-01-02T10:00:00.250Z",
		"geometry.type", "Polygon", "geometry.coordinates.0.1", []any{11.6, 48.1},
	).meta("warnings", []any{})
	tag := added.header.Get("ETag")
	a.get(centre).wants(200, "").heads("ETag", tag, "Cache-Control", "no-cache, private").has("name", "centre", "kind", "operating")
	a.get(centre, withHeader("If-None-Match", tag)).answers(304)
	list := a.get(areasOfOne).wants(200, "").says("1 area.").lists(1)
	a.get(areasOfOne, withHeader("If-None-Match", list.header.Get("ETag"))).answers(304)

	feature := `{"type":"Feature","properties":{"kind":"no_parking","colour":"red"},"geometry":` + triangle + `}`
	changed := a.put(centre, feature, withHeader("If-Match", tag)).wants(200, "").has("kind", "no_parking")
	a.put(centre, operating, withHeader("If-Match", tag)).wants(412, "area_changed")
	a.get(areasOfOne, withHeader("If-None-Match", list.header.Get("ETag"))).wants(200, "").lists(1)
	a.do(http.MethodDelete, centre, withHeader("If-Match", tag)).wants(412, "area_changed")
	a.do(http.MethodDelete, centre, withHeader("If-Match", changed.header.Get("ETag"))).wants(200, "").has("", nil)
	a.do(http.MethodDelete, centre).wants(404, "area_not_found")
	a.get(centre).wants(404, "area_not_found")
	if c := a.areas.changes[0]; c.Agency != 1 || c.Entry.Action != rental.AreaPut || c.Entry.Actor.Subject == "" {
		t.Errorf("change: %+v", c)
	}
	if c := a.areas.changes[len(a.areas.changes)-1]; c.Entry.Action != rental.AreaRemove || c.Shape != nil {
		t.Errorf("removal: %+v", c)
	}
}

func TestAreas_RefusalsNameTheFieldAndAreRecorded(t *testing.T) {
	a := newAPI(t)
	withRing := func(ring string) string {
		return `{"kind":"operating","geometry":{"type":"Polygon","coordinates":[` + ring + `]}}`
	}
	for body, field := range map[string]string{
		`{}`: "geometry", `{"kind":"operating"}`: "geometry", `{"geometry":` + triangle + `}`: "kind",
		`{"kind":"parking","geometry":` + triangle + `}`:                                 "kind",
		`{"type":"Feature","properties":{"kind":"parking"},"geometry":` + triangle + `}`: "kind",
		`{"type":"Feature","properties":{"kind":7},"geometry":` + triangle + `}`:         "body",
		`{"type":"Polygon","kind":"operating","geometry":` + triangle + `}`:              "type",
		`{"kind":"operating","geometry":{"type":"Point","coordinates":[11.5,48.1]}}`:     "geometry.type",
		`{"kind":"operating","geometry":"here"}`:                                         "geometry",
		`{"kind":"operating","colour":"red","geometry":` + triangle + `}`:                "colour",
		`{"kind":"operating","kind":"no_parking","geometry":` + triangle + `}`:           "kind",
		withRing(ring + `,[[11.5,48.1],[11.6,48.1],[11.6,148.2],[11.5,48.1]]`):           "geometry.coordinates[1][2]",
		withRing(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)):                  "geometry.coordinates[0][0]",
	} {
		a.put(centre, body).invalid(field)
	}
	if entry := a.lastEntry(); entry.Action != rental.AreaPut || entry.Code != "validation_failed" {
		t.Errorf("entry: %+v", entry)
	}
	a.put(centre, `{"kind":"operating","geometry":[NaN]}`).wants(400, "malformed_json")
	a.put(centre, `{"kind":"operating",`+strings.Repeat(" ", 300<<10)+`}`).wants(413, "body_too_large").mentions("264 KiB")
	a.put(centre, withRing(strings.Repeat(`[[11.5,48.1],[11.6,48.1],[11.6,48.2],[11.5,48.1]],`, 1_000_000)+ring)).
		wants(413, "body_too_large")
	for _, name := range []string{"Centre", "-a", "a%20b", strings.Repeat("a", 65), "%00", "ä"} {
		a.put(areasOfOne+"/"+name, operating).invalid("area")
	}
	a.put(centre, operating, withHeader("If-Match", "*")).invalid("If-Match")
	if len(a.areas.changes) != 0 {
		t.Errorf("changes: %+v", a.areas.changes)
	}
}

func TestAreas_FailureOfTheStoreIsAnswered(t *testing.T) {
	a := newAPI(t)
	a.get("/api/v1/admin/agencies/0/areas", ofAgency(1)).wants(404, "agency_not_found")
	a.put("/api/v1/admin/agencies/3/areas/centre", operating).wants(404, "agency_not_found")
	a.get("/api/v1/admin/agencies/3/areas").wants(404, "agency_not_found")
	a.areas.err = errors.New("down")
	a.get(areasOfOne).wants(500, "internal")
	a.put(centre, operating).wants(500, "internal")
	if entry := a.lastEntry(); entry.Outcome != telematics.MayHave || entry.Agency != 1 {
		t.Errorf("entry: %+v", entry)
	}
}

// A position with the latitude first is valid in Europe, and far away.
func TestAreas_WarnOfAnAreaFarFromAllStations(t *testing.T) {
	a := newAPI(t)
	at := func(longitude, latitude float64) string {
		return fmt.Sprintf(
			`{"kind":"operating","geometry":{"type":"Polygon","coordinates":[[[%[1]g,%[2]g],[%[3]g,%[2]g],[%[3]g,%[4]g],[%[1]g,%[2]g]]]}}`,
			longitude, latitude, longitude+0.1, latitude+0.1,
		)
	}
	a.put(centre, at(48.1, 11.5)).wants(201, "").meta("warnings", []any{}) // no station
	a.fleet.stations = []telematics.Station{{ID: 5, AgencyID: 1, Latitude: 48.1, Longitude: 11.6}}
	a.put(centre, at(11.5, 48.1)).wants(200, "").meta("warnings", []any{})
	r := a.put(centre, at(48.1, 11.5)).wants(200, "")
	if warnings, _ := r.body.Meta["warnings"].([]any); len(warnings) != 1 {
		t.Errorf("warnings: %v", r.body.Meta)
	}
	r.shows("[longitude, latitude]")
}

func TestClients_SeeWhereToReturn(t *testing.T) {
	a := newAPI(t)
	a.fleet.stations = []telematics.Station{{ID: 5, AgencyID: 1, Name: "Harbour"}, {ID: 6, AgencyID: 2}}
	a.put(centre, operating).wants(201, "")
	for path, field := range map[string]string{"/api/v1/client/areas": "0.geometry.type", "/api/v1/client/stations": "0.name"} {
		r := a.asClient(http.MethodGet, path).wants(200, "").lists(1).meta("agency_id", 1.0).heads("Cache-Control", "no-cache, private")
		if r.at(strings.Split(field, ".")...) == nil {
			t.Errorf("%s: %s", path, r.text)
		}
		a.asClient(http.MethodGet, path, withHeader("If-None-Match", r.header.Get("ETag"))).answers(304)
	}
}
