package main

import (
	"net/http"
	"testing"

	"motorpool/internal/assert"
)

func TestStatus_RefreshesOnlyWhenRequested(t *testing.T) {
	var waits []string
	asked := serving(t, func(w http.ResponseWriter, r *http.Request) {
		waits = append(waits, r.Header.Get("Prefer"))
		says(http.StatusOK, done(`{"vehicle_id":42}`))(w, r)
	})
	for _, args := range [][]string{{"status", "42"}, {"status", "--refresh", "42"}, {"status", "42", "--refresh", "--wait", "20"}} {
		tool(t, args...).prints("42")
	}
	const path = "GET vehicles/42/status"
	assert.EqualSlices(t, *asked, []string{path, path + "?refresh=true", path + "?refresh=true"}, "requests")
	assert.EqualSlices(t, waits, []string{"", "", "wait=20"}, "their Prefer")
	for _, args := range [][]string{{"status", "--wait", "20", "42"}, {"status", "--refresh", "--wait", "31", "42"}} {
		tool(t, args...).fails("--wait")
	}
}
