package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/alerts"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// alertStore has alerts in memory, and the rules of agencies 1 and 2. If err is set, calls return
// it.
type alertStore struct {
	list     []alerts.Alert
	query    alerts.Query // the latest
	settings map[telematics.AgencyID][]alerts.Setting
	err      error
}

const (
	anAlert       = "0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9" // of vehicle 42 of agency 1
	anotherAlert  = "1b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9" // of agency 2, cleared
	aPersonsAlert = "2b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9" // of no agency
	ownAlert      = "3b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9" // about the administrator of the tests
)

func newAlertStore() *alertStore {
	return &alertStore{
		settings: map[telematics.AgencyID][]alerts.Setting{1: nil, 2: nil},
		list: []alerts.Alert{
			{
				ID: uuid.MustParse(anAlert), No: 1, Rule: alerts.Battery12VLow, Severity: alerts.Warning, Agency: 1, Vehicle: 42,
				Plate: "M-IM 42", Facts: map[string]any{"volts": 12.1}, Since: now.Add(-time.Hour), Opened: now.Add(-50 * time.Minute),
				Holder: &alerts.Holder{Booking: 7, Reference: "BK-7", Client: "client-1"},
			},
			{
				ID: uuid.MustParse(anotherAlert), No: 2, Rule: alerts.CommandUnknown, Severity: alerts.Warning, Agency: 2, Vehicle: 9,
				Command: uuid.MustParse(anAlert), Since: now.Add(-time.Hour), Opened: now.Add(-time.Hour), Cleared: now,
			},
			{
				ID: uuid.MustParse(aPersonsAlert), No: 3, Rule: alerts.MassAccess, Severity: alerts.Critical, Person: "anna",
				Since: now, Opened: now,
			},
			{
				ID: uuid.MustParse(ownAlert), No: 4, Rule: alerts.MassAccess, Severity: alerts.Critical, Person: "admin-7",
				Since: now, Opened: now,
			},
		},
	}
}

func (s *alertStore) Find(_ context.Context, q alerts.Query) ([]alerts.Alert, error) {
	s.query = q
	return pageOf(s.list, q.Before, q.Limit, func(a alerts.Alert) (int64, bool) {
		open := a.Cleared.IsZero()
		return a.No, of(q.Agency, a.Agency) && (q.ID == uuid.Nil || q.ID == a.ID) && (q.Persons || a.Person == "") &&
			(q.State == "" || open == (q.State == alerts.Open))
	}), s.err
}

func (s *alertStore) Acknowledge(
	_ context.Context, id uuid.UUID, agency telematics.AgencyID, note string, by telematics.Author,
) (alerts.Alert, error) {
	i := slices.IndexFunc(s.list, func(a alerts.Alert) bool { return a.ID == id && of(agency, a.Agency) })
	if i < 0 || s.err != nil {
		return alerts.Alert{}, s.err
	}
	if s.list[i].Seen == nil {
		s.list[i].Seen = &alerts.Acknowledgement{By: by.Subject, At: now, Note: note}
	}
	return s.list[i], nil
}

func (s *alertStore) Settings(_ context.Context, agency telematics.AgencyID) ([]alerts.Setting, error) {
	set, known := s.settings[agency]
	if !known {
		return nil, telematics.NoSuchAgency(agency)
	}
	return alerts.Complete(set), s.err
}

func (s *alertStore) SetSettings(_ context.Context, agency telematics.AgencyID, set []alerts.Setting, _ telematics.Author) error {
	if _, known := s.settings[agency]; !known {
		return telematics.NoSuchAgency(agency)
	}
	s.settings[agency] = set
	return s.err
}

const alertList = "/api/v1/admin/alerts"

func TestAlerts_AreListedWithTheirFilters(t *testing.T) {
	a := newAPI(t)
	a.get(alertList+"?state=open&severity=warning&rule=battery_12v_low&vehicle_id=42").wants(200, "").lists(3)
	want := alerts.Query{
		State: alerts.Open, Severity: alerts.Warning, Rule: alerts.Battery12VLow, Vehicle: 42, Persons: true,
		Page: telematics.Page{Limit: 51},
	}
	same(t, a.alerts.query, want, "query")
	entry := a.lastEntry()
	same(t, entry.Action, telematics.VehiclesRead, "the action")
	if got, want := entry.Details["filter"], map[string]any{
		"state": "open", "severity": "warning", "rule": "battery_12v_low", "vehicle_id": "42",
	}; !reflect.DeepEqual(got, want) || entry.Details["alerts"] != 3 {
		t.Errorf("details %v", entry.Details)
	}
	first := a.get(alertList+"?limit=1").wants(200, "").lists(1).has("0.id", ownAlert)
	next := a.get(alertList+"?limit=3&cursor="+first.body.Meta["next_cursor"].(string)).wants(200, "").lists(3).meta("next_cursor", nil)
	next.has("2.id", anAlert, "2.state", "open", "2.summary", "M-IM 42: 12 V battery is low (12.1 V)", "2.plate_number", "M-IM 42",
		"2.facts.volts", 12.1, "2.holder.client", "client-1", "2.opened_at", "2026-01-02T09:10:00.250Z", "2.acknowledged_at", nil,
		"1.state", "cleared", "1.command_id", anAlert, "1.holder", nil)
	for _, query := range []string{"state=closed", "severity=high", "rule=hot", "vehicle_id=x", "agency_id=0"} {
		a.get(alertList + "?" + query).invalid(strings.Split(query, "=")[0])
	}
}

func TestAlerts_AreSeenByStaffOfTheAgency(t *testing.T) {
	a := newAPI(t)
	ofOne := claiming(claimSet{"agency_id": 1, "scope": nil})
	a.get(alertList, ofOne).wants(200, "").lists(1).has("0.id", anAlert)
	a.get(alertList+"?agency_id=2", ofOne).wants(200, "").lists(0)
	a.get(alertList+"?agency_id=2").wants(200, "").lists(1)
	a.get(alertList+"/"+anAlert, ofOne).wants(200, "").has("id", anAlert).mentions("M-IM 42")
	for _, id := range []string{anotherAlert, aPersonsAlert, uuid.NewString()} {
		a.get(alertList+"/"+id, ofOne).wants(404, "alert_not_found")
		a.post(alertList+"/"+id+"/acknowledge", ofOne).wants(404, "alert_not_found")
	}
	entry := a.lastEntry()
	if entry.Action != alerts.Acknowledge || entry.Code != alerts.NotFound || entry.Outcome != telematics.NotExecuted {
		t.Errorf("entry: %+v", entry)
	}
	for _, level := range []string{"viewer", "operator"} { // of all agencies
		token := claiming(claimSet{"role": level})
		a.get(alertList, token).wants(200, "").lists(2)
		a.get(alertList+"/"+aPersonsAlert, token).wants(404, "alert_not_found")
	}
	// The UUID of zeros is no id; where a query selects by an id, it means any.
	for _, id := range []string{"x", uuid.Nil.String()} {
		a.get(alertList + "/" + id).invalid("id")
		a.post(alertList + "/" + id + "/acknowledge").invalid("id")
	}
}

func TestAlerts_AreAcknowledgedOnce(t *testing.T) {
	a := newAPI(t)
	path := alertList + "/" + anAlert + "/acknowledge"
	a.post(path, claiming(claimSet{"role": "operator", "sub": "ben"}), withJSON(`{"note":"on my way"}`)).wants(200, "").
		has("acknowledged_by", "ben", "note", "on my way", "acknowledged_at", "2026-01-02T10:00:00.250Z", "state", "open")
	a.post(path, withJSON(`{"note":"me, too"}`)).wants(200, "").has("acknowledged_by", "ben", "note", "on my way").mentions("ben")
	a.post(alertList+"/"+anotherAlert+"/acknowledge").wants(200, "").has("acknowledged_by", "admin-7", "note", nil)
	for _, note := range []string{`""`, `" "`, `"a\u0000"`, `7`, `"` + strings.Repeat("a", 501) + `"`} {
		a.post(path, withJSON(`{"note":`+note+`}`)).invalid("note")
	}
	a.post(alertList+"/"+aPersonsAlert+"/acknowledge").wants(200, "").has("person", "anna", "agency_id", nil, "vehicle_id", nil)
	a.post(alertList+"/"+ownAlert+"/acknowledge").wants(403, "forbidden").mentions("another administrator")
	a.alerts.err = errors.New("down")
	a.get(alertList).wants(500, "internal")
	a.post(path).wants(500, "internal")
	same(t, a.lastEntry().Outcome, telematics.MayHave, "the outcome")
}

const rulesOfOne = "/api/v1/admin/agencies/1/alert-rules"

func TestAlertRules_AreReplaced(t *testing.T) {
	a := newAPI(t)
	count := len(alerts.Defaults())
	a.get(rulesOfOne).wants(200, "").has("rules.0.rule", "battery_12v_low", "rules.0.for_s", 600.0, "rules.0.levels.0.limit", 12.2)
	r := a.put(rulesOfOne, `{"rules":[
		{"rule":"lamp","enabled":false,"for_s":null},{"rule":"battery_12v_low","levels":[{"severity":"critical","limit":11.5}]}]}`)
	r.wants(200, "").has("rules.0.for_s", 600.0, "rules.0.enabled", true, "rules.0.levels.0.severity", "critical")
	same(t, len(r.body.Meta["defaults"].([]any)[0].(map[string]any)["levels"].([]any)), 2, "default levels")
	same(t, len(r.at("rules").([]any)), count, "rules")
	same(t, len(r.at("rules", "0", "levels").([]any)), 1, "levels")
	for _, s := range a.alerts.settings[1] {
		same(t, s.Off, s.Rule == alerts.Lamp, "%s is off", s.Rule)
	}
	a.put(rulesOfOne, `{"rules":[]}`).wants(200, "").has("rules.0.levels.0.limit", 12.2)
}

func TestAlertRules_RefusalsNameTheFieldAndAreRecorded(t *testing.T) {
	a := newAPI(t)
	for body, field := range map[string]string{
		`{}`:                              "rules",
		`[]`:                              "body",
		`{"rules":[{"rule":"hot"}]}`:      "rules[0].rule",
		`{"rules":[{"rule":"lamp"},{}]}`:  "rules[1].rule",
		`{"rules":[{"rule":"lamp"},"a"]}`: "rules[1]",
		`{"rules":[{"rule":"lamp","colour":"red"}]}`:                                   "rules[0].colour",
		`{"rules":[{"rule":"lamp","levels":[{"severity":"red"}]}]}`:                    "rules[0].levels[0].severity",
		`{"rules":[{"rule":"energy_low","levels":[{"severity":"info","limit":1e9}]}]}`: "rules[0].levels[0].limit",
	} {
		a.put(rulesOfOne, body).invalid(field)
	}
	a.get("/api/v1/admin/agencies/3/alert-rules").wants(404, "agency_not_found")
	a.put("/api/v1/admin/agencies/3/alert-rules", `{"rules":[]}`).wants(404, "agency_not_found")
	a.put(rulesOfOne, `{"rules":[{"rule":"lamp"},{"rule":"lamp"}]}`).invalid("rules[1].rule")
	if entry := a.lastEntry(); entry.Action != alerts.RulesChange || entry.Code != "validation_failed" || entry.Agency != 1 {
		t.Errorf("entry: %+v", entry)
	}
	same(t, len(a.alerts.settings[1]), 0, "settings")
}

// The rule watches administrators of the agency, too.
func TestAlertRules_MassAccessIsChangedByAdministratorsOfAllAgencies(t *testing.T) {
	a := newAPI(t)
	limit := func(n string) string {
		return `{"rules":[{"rule":"mass_access","levels":[{"severity":"critical","limit":` + n + `}]}]}`
	}
	a.put(rulesOfOne, limit("70")).wants(200, "")
	isKept := func() {
		t.Helper()
		set := a.alerts.settings[1]
		i := slices.IndexFunc(set, func(s alerts.Setting) bool { return s.Rule == alerts.MassAccess })
		if i < 0 || set[i].Off || *set[i].Levels[0].Limit != 70 {
			t.Errorf("the settings are %+v", set)
		}
	}
	for _, body := range []string{limit("100000"), `{"rules":[{"rule":"mass_access","enabled":false}]}`} {
		a.put(rulesOfOne, body, ofAgency(1)).invalid("rules[0]")
		isKept()
	}
	a.put(rulesOfOne, `{"rules":[{"rule":"lamp","enabled":false}]}`, ofAgency(1)).wants(200, "")
	isKept()
	var read struct {
		Data json.RawMessage `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.get(rulesOfOne, ofAgency(1)).text), &read))
	a.put(rulesOfOne, string(read.Data), ofAgency(1)).wants(200, "") // as it was read
	isKept()
}
