package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// demoPowertrains are the cars that show one powertrain each, with the fields that it cannot have.
var demoPowertrains = []struct {
	id   telematics.VehicleID
	name string
	null []string
}{
	{1, "combustion", []string{"telemetry.battery_level_percent", "telemetry.charging_status"}},
	{7, "plug-in hybrid", nil},
	{2, "electric", []string{"telemetry.fuel_level_percent", "diagnostics.oil_life_percent"}},
}

// leaves lists the members of an object by their paths; the manufacturer's data is one member.
func leaves(prefix string, value any) map[string]any {
	found := map[string]any{}
	members, ok := value.(map[string]any)
	if !ok || prefix == "oem_data" {
		found[prefix] = value
		return found
	}
	for name, member := range members {
		path := strings.TrimPrefix(prefix+"."+name, ".")
		for leaf, v := range leaves(path, member) {
			found[leaf] = v
		}
	}
	return found
}

func (l *live) status(id telematics.VehicleID) map[string]any { return leaves("", l.statusBody(id)) }

func (l *live) statusBody(id telematics.VehicleID) (data any) {
	l.Helper()
	r := l.call(http.MethodGet, fmt.Sprintf("vehicles/%d/status", id), "ADMIN_TOKEN")
	if err := json.Unmarshal(r.Data, &data); err != nil || r.status != http.StatusOK {
		l.Fatalf("status of vehicle %d: %d %v", id, r.status, err)
	}
	return data
}

// showsEachPowertrain checks that the cars report everything that they can, as the contract has it.
func (l *live) showsEachPowertrain() {
	l.Helper()
	document, err := openapi3.NewLoader().LoadFromFile("../../httpapi/openapi.yaml")
	require.NoError(l, err)
	contract := document.Components.Schemas["VehicleStatus"].Value
	for _, car := range demoPowertrains {
		var body any
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			body = l.statusBody(car.id)
			if leaves("", body)["telemetry.mileage_km"] != nil || time.Now().After(deadline) {
				break
			}
		}
		assert.NoError(l, contract.VisitJSON(body), "vehicle %d (%s)", car.id, car.name)
		for field, value := range leaves("", body) {
			if (value == nil) != slices.Contains(car.null, field) && field != "location.address" {
				l.Errorf("vehicle %d (%s): %s is %v", car.id, car.name, field, value)
			}
		}
	}
}

// refreshLessons are what each car shows for a refresh: a car that cannot execute a command cannot
// be refreshed either, but a car that fails at every command still reports its state.
var refreshLessons = map[telematics.VehicleID]lesson{
	1: done, 2: done, 3: done, 4: done, 5: away, 6: done, 7: slowly, 8: unanswered, 9: noisily, 10: done,
}

func (l *live) teachesRefreshes() {
	l.Helper()
	type taught struct {
		id telematics.VehicleID
		r  reply
	}
	results := make(chan taught)
	for id := range refreshLessons {
		go func() {
			results <- taught{id, l.call(http.MethodGet, fmt.Sprintf("vehicles/%d/status?refresh=true", id), "ADMIN_TOKEN")}
		}()
	}
	for range refreshLessons {
		t := <-results
		got, want := t.r, refreshLessons[t.id]
		l.Logf(
			"| %d | refresh | %d | %s | %s | %s | %q | %d ms |", t.id, got.status, got.Error.Code, got.Error.Outcome,
			got.retryAfter, got.Meta.Source, got.took.Milliseconds(),
		)
		if got.status != want.status || got.Error.Code != want.code || got.Error.Outcome != want.outcome ||
			got.retryAfter != want.retryAfter ||
			got.took < want.atLeast ||
			got.status == http.StatusOK && got.Meta.Source != "live" {
			l.Errorf(
				"vehicle %d: %d %+v, source %q, Retry-After %q after %v; want %+v", t.id, got.status, got.Error,
				got.Meta.Source, got.retryAfter, got.took, want,
			)
		}
	}
}
