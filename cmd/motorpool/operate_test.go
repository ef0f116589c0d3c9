package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestStatus_RefreshesOnlyWhenRequested(t *testing.T) {
	var asked []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI+" "+r.Header.Get("Prefer"))
		_, _ = io.WriteString(w, `{"success":true,"message":"The status.","data":{"vehicle_id":42}}`)
	}))
	defer service.Close()
	t.Setenv("MOTORPOOL_URL", service.URL)
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	for _, args := range [][]string{{"status", "42"}, {"status", "--refresh", "42"}, {"status", "42", "--refresh", "--wait", "20"}} {
		tool(t, args...).prints("42")
	}
	const path = "GET /api/v1/admin/vehicles/42/status"
	if got, want := strings.Join(asked, "\n"), path+" \n"+path+"?refresh=true \n"+path+"?refresh=true wait=20"; got != want {
		t.Errorf("requests\n%s\nwant\n%s", got, want)
	}
	for _, args := range [][]string{{"status", "--wait", "20", "42"}, {"status", "--refresh", "--wait", "31", "42"}} {
		tool(t, args...).fails("--wait")
	}
}

func TestUnits_WithoutAVehicleAreListed(t *testing.T) {
	var asked string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.RequestURI
		_, _ = io.WriteString(w, `{"success":true,"message":"1 unit.","data":[{"unit":"unit-x"}]}`)
	}))
	defer service.Close()
	printed, err := output(t, "units", "unknown", "--url", service.URL, "--token", "secret", "--limit", "7")
	if err != nil || !strings.Contains(printed, "unit-x") || asked != "GET /api/v1/admin/units/unknown?limit=7" {
		t.Errorf("printed %q after the request %q, %v", printed, asked, err)
	}
}
