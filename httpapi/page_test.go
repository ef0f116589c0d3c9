package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"
)

// pages reads a list to its end, and returns the IDs in it.
func pages(a *api, path string, limit int, change ...func(*http.Request)) []any {
	a.t.Helper()
	var ids []any
	cursor := ""
	for range 100 {
		r := a.get(fmt.Sprintf("%s?limit=%d%s", path, limit, cursor), change...).wants(200, "")
		for _, item := range r.body.Data.([]any) {
			ids = append(ids, item.(map[string]any)["id"])
		}
		next, ok := r.body.Meta["next_cursor"].(string)
		if !ok {
			return ids
		}
		cursor = "&cursor=" + next
	}
	a.t.Fatalf("%s: too many pages", path)
	return nil
}

func TestCursor_OfAnotherListIsRefused(t *testing.T) {
	a := newAPI(t)
	r := a.get("/api/v1/admin/vehicles?limit=1").wants(200, "")
	cursor := r.body.Meta["next_cursor"].(string)
	a.get("/api/v1/admin/vehicles?cursor="+cursor).wants(200, "")
	a.get("/api/v1/admin/activity?cursor="+cursor).wants(422, "validation_failed")
}
