package httpapi_test

import (
	"reflect"
	"testing"
	"time"

	"motorpool/telematics"
)

const unknownUnits = "/api/v1/admin/units/unknown"

func TestUnitsWithoutAVehicleAreListedNewestAcquaintanceFirst(t *testing.T) {
	a := newAPI(t)
	a.fleet.unknown = []telematics.UnknownUnit{
		{No: 3, Unit: "a", FirstSeen: now.Add(-time.Hour), LastSeen: now, Messages: 97},
		{No: 5, Unit: "b", FirstSeen: now.Add(-time.Minute), LastSeen: now, Messages: 1},
	}
	r := a.get(unknownUnits+"?limit=1").wants(200, "")
	want := []any{map[string]any{"unit": "b", "first_seen": "2026-01-02T09:59:00.250Z", "last_seen": "2026-01-02T10:00:00.250Z", "messages": 1.0}}
	if !reflect.DeepEqual(r.body.Data, any(want)) || r.body.Message != "1 unit." {
		t.Errorf("first page %s", r.text)
	}
	next := r.body.Meta["next_cursor"].(string)
	r = a.get(unknownUnits+"?cursor="+next).wants(200, "")
	if list := r.body.Data.([]any); len(list) != 1 || list[0].(map[string]any)["unit"] != "a" || r.body.Meta["next_cursor"] != nil {
		t.Errorf("second page %s", r.text)
	}
	a.get("/api/v1/admin/vehicles?cursor="+next).wants(422, "validation_failed")
	a.get(unknownUnits+"?limit=0").wants(422, "validation_failed")
	a.fleet.unknown = nil
	if r := a.get(unknownUnits).wants(200, ""); !reflect.DeepEqual(r.body.Data, any([]any{})) {
		t.Errorf("none: %s", r.text)
	}
}

func TestUnitsWithoutAVehicleBelongToNoAgency(t *testing.T) {
	a := newAPI(t)
	r := a.get(unknownUnits, withToken(agencyToken(t, 1))).wants(403, "forbidden")
	if want := "This belongs to no agency; it needs the access token of an administrator of all agencies, and yours is of agency 1 alone."; r.body.Message != want {
		t.Errorf("says %q", r.body.Message)
	}
	a.get(unknownUnits, withToken(clientToken(t))).wants(403, "forbidden")
	a.get(unknownUnits, anonymous).wants(401, "unauthenticated")
}

const keyHolders = "/api/v1/admin/units/keys"

func TestKeyHolders_AreCountedForAdministratorsOfAllAgencies(t *testing.T) {
	a := newAPI(t)
	a.fleet.holders = map[string]telematics.KeyHolders{"a key/2": {Holding: 117, Missing: 1, Unreported: 2, MissingUnits: []telematics.Unit{"unit-7"}}}
	r := a.get(keyHolders+"?key=a+key%2F2").wants(200, "")
	want := map[string]any{"key": "a key/2", "holding": 117.0, "missing": 1.0, "unreported": 2.0, "missing_units": []any{"unit-7"}}
	if !reflect.DeepEqual(r.body.Data, any(want)) || r.body.Message != "117 of 118 units that said which keys they hold have this one; 2 did not say." {
		t.Errorf("%s", r.text)
	}
	if r := a.get(keyHolders+"?key=another").wants(200, ""); !reflect.DeepEqual(r.body.Data.(map[string]any)["missing_units"], any([]any{})) {
		t.Errorf("none: %s", r.text)
	}
	a.get(keyHolders).wants(422, "validation_failed")
	a.get(keyHolders+"?key=").wants(422, "validation_failed")
	a.get(keyHolders+"?key=a", withToken(agencyToken(t, 1))).wants(403, "forbidden")
}

func TestVehicle_NamesTheKeysOfItsUnit(t *testing.T) {
	for name, keys := range map[string][]string{"two": {"k1", "k2"}, "none": {}, "never said": nil} {
		a := newAPI(t)
		a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) { t.Contact.Keys = keys })
		var want any
		if keys != nil {
			list := []any{}
			for _, key := range keys {
				list = append(list, key)
			}
			want = list
		}
		if r := a.get("/api/v1/admin/vehicles/42").wants(200, ""); !reflect.DeepEqual(r.body.Data.(map[string]any)["keys"], want) {
			t.Errorf("%s: %s", name, r.text)
		}
	}
}
