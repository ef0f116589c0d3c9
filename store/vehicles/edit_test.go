package vehicles

import (
	"errors"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/telematics"
)

// Edits follow the rules of fleet files: what a file is refused for, an edit is, too, with the name
// of the field.
func TestEdit_HasTheRulesOfFleetFiles(t *testing.T) {
	p := withWholeFleet(t)
	admin := telematics.Activity{
		Actor: telematics.Actor{Subject: "a", Role: telematics.Admin}, Action: telematics.VehicleChange, At: morning,
	}
	for _, fields := range []string{
		`"unit": "U 1"`, `"unit": "\u0000"`, `"unit": "probe-1"`, `"unit": 7`, `"protocol": "smoke"`, `"protocol": "v1"`,
		`"installation": {"fly": "up"}`,
		`"status": "lost"`, `"until": "tomorrow", "status": "maintenance"`,
		`"until": "2126-01-01T00:00:00Z", "status": "inactive"`,
		`"until": "9999-12-31T23:59:59-01:00", "status": "maintenance"`, `"reason": 7`, `"powertrain": null`,
		`"plate_number": " "`, `"plate_number": "\u202e"`, `"brand": "Citro` + "\ufffd" + `n"`, `"year": 1700`, `"image": "zoe.png"`,
		`"features": [""]`, `"capabilities": ["fly"]`,
		`"capabilities": ["lock", "lock"]`, `"agency_id": 7`, `"agency_id": 2`, `"hourly_rate": 1.555`, `"hourly_rate": -1`,
		`"hourly_rate": null, "deposit": 5`, `"wheels": 4`,
	} {
		_, ofFile := tryPlan(p, t, `{"vehicles": [{"id": 1, `+fields+`}]}`)
		if ofFile == nil {
			t.Errorf("a fleet file with %s is accepted", fields)
			continue
		}
		before := onRecord(t, p)
		_, err := p.Edit(t.Context(), telematics.FleetEdit{Vehicle: 1, Fields: []byte("{" + fields + "}"), Entry: admin})
		var problems []string
		var several interface{ Unwrap() []error }
		if errors.As(err, &several) {
			for _, one := range several.Unwrap() {
				var field *rental.FieldError
				if errors.As(one, &field) {
					problems = append(problems, "vehicles[0]."+field.Field+": "+strings.TrimPrefix(field.Message, "is not valid: "))
				}
			}
		}
		if got := strings.Join(problems, "\n"); got != ofFile.Error() {
			t.Errorf("%s: an edit is refused with\n%v\nwant as a file:\n%v", fields, err, ofFile)
		}
		if after := onRecord(t, p); after.vehicles[1].Plate != before.vehicles[1].Plate ||
			after.vehicles[1].Unit != before.vehicles[1].Unit {
			t.Errorf("%s: vehicle 1 has changed to %+v", fields, after.vehicles[1])
		}
	}
	var entries int
	if err := p.Pool.Get(&entries, `select count(*) from activity where action <> 'fleet.import'`); err != nil || entries != 0 {
		t.Errorf("%d audit log entries of what was refused, %v", entries, err)
	}
}

// Staff of an agency read in the audit log that a vehicle of theirs has lost its unit, or has left,
// and nothing of other agencies' vehicles.
func TestEdit_WhatIsLostIsInTheAuditLogOfTheAgencyThatLosesIt(t *testing.T) {
	p := withWholeFleet(t)
	done, err := edit(t, p, `{"unit": "U1"}`) // of vehicle 1
	if err != nil || len(done.Changes) != 4 {
		t.Fatalf("changes %q, %v", done.Changes, err)
	}
	if _, err := edit(t, p, `{"agency_id": 1, "hourly_rate": 12}`); err != nil {
		t.Fatal(err)
	}
	type read struct {
		vehicle telematics.VehicleID
		changes any
	}
	for agency, want := range map[telematics.AgencyID][]read{
		1: {{2, []any{
			"vehicle 2: agency 2 → 1", "vehicle 2: hourly rate 10.00 EUR → 12.00 CHF", "vehicle 2: deposit 0.00 EUR → 0.00 CHF",
		}}, {1, []any{"vehicle 1: unit U1 → none"}}},
		2: {{2, []any{"vehicle 2: agency 2 → 1"}}, {2, []any{
			"vehicle 2: unit none → U1", "vehicle 2: protocol none → teltonika",
			"vehicle 2: installation none → lock output 1 on, unlock output 1 off",
		}}},
	} {
		entries, err := activity.New(p.DB).Activities(
			t.Context(), telematics.ActivityQuery{Agency: agency, Action: telematics.VehicleChange},
		)
		require.NoError(t, err)
		var got []read
		for _, e := range entries {
			got = append(got, read{e.Vehicle, e.Details["changes"]})
			assert.Equal(t, e.Actor.Subject, "eva", "actor")
		}
		assert.DeepEqual(t, got, want, "what agency %d reads", agency)
	}
}
