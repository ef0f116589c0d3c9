package vehicles

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// edit changes vehicle 2 as eva does.
func edit(t *testing.T, p *fixture, fields string) (telematics.FleetEdited, error) {
	t.Helper()
	return p.Edit(t.Context(), telematics.FleetEdit{Vehicle: 2, Fields: []byte(fields), Entry: telematics.Activity{
		Actor: telematics.Actor{Subject: "eva", Role: telematics.Admin}, Action: telematics.VehicleChange, At: morning,
	}})
}

func TestEdit_MaintenanceHasAReasonAndAnEnd(t *testing.T) {
	p := withWholeFleet(t)
	for _, fields := range []string{
		`{"status": "maintenance"}`, `{"status": "maintenance", "reason": " "}`, `{"status": "maintenance", "reason": null}`,
	} {
		var field *rental.FieldError
		if _, err := edit(t, p, fields); !errors.As(err, &field) || field.Field != "reason" {
			t.Errorf("%s: %v, want a reason asked for", fields, err)
		}
	}
	change(
		t, p, `{"stations":[{"id":2,"agency_id":1,"name":"Ost","address":"Orleansplatz 1","latitude":48.1,"longitude":11.6}]}`,
	)
	until := time.Now().Add(4 * time.Hour).UTC().Truncate(time.Second)
	for hours, state := range map[int]string{-1: "active", 1: "upcoming", 5: "upcoming", -3: "completed"} {
		putBooking(t, p, 2, hours, state)
	}
	done, err := edit(t, p, fmt.Sprintf(`{"status": "maintenance", "reason": "brakes", "until": %q}`, until.Format(time.RFC3339)))
	if err != nil || done.Bookings == nil || *done.Bookings != 2 {
		t.Fatalf("%+v, %v; want the active booking, and the one in that time", done, err)
	}
	read := func() telematics.MaintenanceDetails {
		t.Helper()
		twin, err := p.Twin(t.Context(), 2)
		require.NoError(t, err)
		return twin.Maintenance
	}
	first := read()
	if since := time.Since(first.Since); first.Reason != "brakes" || !first.Until.Equal(until) || first.By != "eva" || since > time.Minute {
		t.Errorf("maintenance %+v", first)
	}
	// What follows keeps what it does not say; a fleet file keeps it, too.
	change(t, p, `{"vehicles": [{"id": 2, "status": "maintenance", "color": "red"}]}`)
	assert.Equal(t, read(), first, "after an import")
	if done, err = edit(t, p, `{"until": null}`); err != nil || *done.Bookings != 3 {
		t.Errorf("%+v, %v; want the later booking counted", done, err)
	}
	first.Until = time.Time{}
	assert.Equal(t, read(), first, "without an end")
	done, err = edit(t, p, `{"status": "available", "reason": "brakes renewed"}`)
	if is := read(); err != nil || done.Bookings != nil || is != (telematics.MaintenanceDetails{}) {
		t.Errorf("back: %+v, %v, %+v", done, err, is)
	}
	if is := vehicleStatuses(t, p)[2]; is != telematics.InUse {
		t.Errorf("the vehicle is %s, want in_use as its booking says", is)
	}
	entries, err := activity.New(p.DB).Activities(t.Context(), telematics.ActivityQuery{Action: telematics.VehicleChange})
	if err != nil || len(entries) != 3 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if got, want := entries[0].Details, map[string]any{"reason": "brakes renewed", "changes": []any{
		"vehicle 2: status maintenance → in_use", "vehicle 2: reason brakes → none",
	}}; !reflect.DeepEqual(got, want) || entries[0].Actor.Subject != "eva" {
		t.Errorf("details %v, want %v", got, want)
	}
}

// A fleet file is imported again, also after an end that it names.
func TestImport_MaintenanceIsOverByItsEnd(t *testing.T) {
	p := withWholeFleet(t)
	over := `{"vehicles": [{"id": 2, "status": "maintenance", "reason": "brakes", "until": "2026-01-01T00:00:00Z", "color": "%s"}]}`
	change(t, p, fmt.Sprintf(over, "red"))
	if v := onRecord(t, p).vehicles[2]; v.Status == telematics.Maintenance || v.Color != "red" || v.Maintenance.Reason != "" {
		t.Errorf("%+v; want it red, and in service", v)
	}
	for _, fields := range []string{
		`{"status": "maintenance", "reason": "brakes"}`, `{"reason": "brakes", "until": "2126-01-01T00:00:00Z"}`,
	} {
		_, err := edit(t, p, fields)
		require.NoError(t, err)
		before := onRecord(t, p).vehicles[2]
		change(t, p, fmt.Sprintf(over, "red"))
		if is := onRecord(t, p).vehicles[2]; !reflect.DeepEqual(is, before) {
			t.Errorf("%+v; want the maintenance that began later: %+v", is, before)
		}
	}
	var field *rental.FieldError
	if _, err := edit(t, p, `{"until": "2026-01-01T00:00:00Z"}`); !errors.As(err, &field) || field.Field != "until" {
		t.Errorf("%v, want a time to come asked for", err)
	}
}

func TestEdit_MaintenanceThatEndsMeanwhile(t *testing.T) {
	p := withWholeFleet(t)
	_, err := edit(t, p, `{"status": "maintenance", "reason": "brakes"}`)
	require.NoError(t, err)
	ends := storetest.Begin(t, p.Pool)
	ends.MustExec(`update vehicles set status = 'available' where id = 2`)
	edited := make(chan error, 1)
	go func() {
		_, err := edit(t, p, `{"until": "2126-01-01T00:00:00Z"}`)
		edited <- err
	}()
	storetest.WaitForLock(t, p.DB)
	require.NoError(t, ends.Commit())
	var field *rental.FieldError
	if err := <-edited; !errors.As(err, &field) || field.Field != "until" {
		t.Errorf("%v, want until refused: the vehicle is in service", err)
	}
}

// An instance of the version before writes the status alone.
func TestMaintenance_LeftByTheVersionBefore(t *testing.T) {
	p := withWholeFleet(t)
	_, err := edit(t, p, `{"status": "maintenance", "reason": "brakes", "until": "2126-01-01T00:00:00Z"}`)
	require.NoError(t, err)
	for _, status := range []string{"inactive", "maintenance"} {
		storetest.Exec(t, p.Pool, `update vehicles set status = $1 where id = 2`, status)
	}
	if twin, err := p.Twin(t.Context(), 2); err != nil || twin.Maintenance != (telematics.MaintenanceDetails{}) {
		t.Errorf("%+v, %v; want nothing of the time before", twin.Maintenance, err)
	}
}
