package activity

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestExport_HasTheEntriesOfTheRangeAsLinesOfJSON(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	l.write(numbered(1, 20)...)
	l.write(telematics.Activity{At: march.AddDate(0, 1, 0), Actor: telematics.Actor{Role: telematics.System}, Action: "x"})
	export := func(r Range) []string {
		t.Helper()
		var file bytes.Buffer
		l.must(l.Export(t.Context(), &file, r))
		return strings.SplitAfter(file.String(), "\n")
	}
	whole := export(Range{})
	if len(whole) != 22 || whole[21] != "" {
		t.Fatalf("exported as %q, want 21 lines", whole)
	}
	for i, line := range whole[:21] {
		var e struct{ ID int }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID != i+1 {
			t.Errorf("line %d: %v, %s", i+1, err, line)
		}
	}
	var request string
	l.must(l.db.Pool.Get(&request, `select request_id from activity where id = 10`))
	if want := `{"id":10,"at":"2026-03-24T10:00:10.123456Z","actor_subject":"admin-\u003c3\u003e","actor_role":"admin",` +
		`"actor_agency_id":2,"agency_id":2,"vehicle_id":10,` +
		`"action":"status.read","parameters":{"filter":{"q":"ä \u0026 b"},"vehicles":10},"outcome":"executed","code":"","request_id":"` +
		request +
		`","latency_us":1500,"late":false,"note":""}` + "\n"; whole[9] != want {
		t.Errorf("line 10\n got %swant %s", whole[9], want)
	}
	if want := `{"id":21,"at":"2026-04-24T10:00:00.123456Z","actor_subject":"","actor_role":"system","action":"x","outcome":"",` +
		`"code":"","latency_us":0,"late":false,"note":""}` +
		"\n"; whole[20] != want {
		t.Errorf("line 21\n got %swant %s", whole[20], want)
	}
	part := Range{From: march.Add(10 * time.Second), To: march.Add(12 * time.Second)}
	if lines := export(part); strings.Join(lines, "") != whole[9]+whole[10] {
		t.Errorf("a part of the log is %q, want the entries 10 and 11", lines)
	}
}
