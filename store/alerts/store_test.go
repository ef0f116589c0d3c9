package alerts

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/alerts"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// world is a fleet whose time the test sets.
type world struct {
	*testing.T
	db     *pg.DB
	store  *Store
	now    time.Time
	events []telematics.Event
	places areasAt
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, db: storetest.Open(t, storetest.NewDatabase(t)), now: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)}
	w.exec(`insert into agencies (id, code, name) values (1, 'MUC', 'Isar'), (2, 'BER', 'Spree')`)
	w.restart()
	return w
}

// restart replaces the store, as a restart of every instance does.
func (w *world) restart() {
	c := Config{DB: w.db, Publish: func(e telematics.Event) { w.events = append(w.events, e) }}
	if w.places != nil {
		c.Areas = w.places
	}
	w.store = New(c)
	w.store.now = &w.now
}

func (w *world) exec(statement string, args ...any) {
	w.Helper()
	storetest.Exec(w, w.db.Pool, statement, args...)
}

// takeEvents returns the changes that were published since the last call.
func (w *world) takeEvents() (found []string) {
	for _, e := range w.events {
		found = append(found, fmt.Sprintf("%s %s %d", e.Alert.Change, e.Alert.Rule, e.Vehicle))
	}
	w.events = nil
	return found
}

// add adds an alert that is open.
func (w *world) add(rule alerts.Rule, agency any, vehicle any, person string) (id uuid.UUID) {
	w.Helper()
	require.NoError(w, w.db.Pool.Get(&id, `
		insert into alerts (no, rule, severity, agency_id, vehicle_id, person, since, opened_at, facts)
		values (nextval('alerts_no'), $1, 'warning', $2, $3, $4, $5::timestamptz - interval '1 min', $5, '{"volts": 11.5}') returning id`,
		rule, agency, vehicle, person, w.now))
	return id
}

func (w *world) find(q alerts.Query) []alerts.Alert {
	w.Helper()
	list, err := w.store.Find(w.Context(), q)
	require.NoError(w, err)
	return list
}

func by(subject string) telematics.Author {
	return telematics.Author{Actor: telematics.Actor{Subject: subject, Role: telematics.Admin}, RequestID: uuid.New()}
}

func TestFind_SelectsByEachField(t *testing.T) {
	w := newWorld(t)
	first, second := w.add(alerts.LeftOpen, 1, 7, ""), w.add(alerts.Silent, 2, 8, "")
	person := w.add(alerts.MassAccess, nil, nil, "tom")
	w.exec(`update alerts set cleared_at = now() where id = $1`, second)
	// It has not opened.
	w.exec(`insert into alerts (rule, severity, agency_id, vehicle_id, since) values ('lamp', 'info', 1, 7, now())`)
	for name, c := range map[string]struct {
		query alerts.Query
		want  []uuid.UUID
	}{
		"all":          {alerts.Query{Persons: true}, []uuid.UUID{person, second, first}},
		"of vehicles":  {alerts.Query{}, []uuid.UUID{second, first}},
		"of an agency": {alerts.Query{Agency: 1, Persons: true}, []uuid.UUID{first}},
		"of a vehicle": {alerts.Query{Vehicle: 8}, []uuid.UUID{second}},
		"open":         {alerts.Query{State: alerts.Open}, []uuid.UUID{first}},
		"cleared":      {alerts.Query{State: alerts.Cleared}, []uuid.UUID{second}},
		"of a rule":    {alerts.Query{Rule: alerts.LeftOpen}, []uuid.UUID{first}},
		"a severity":   {alerts.Query{Severity: alerts.Critical}, nil},
		"by id":        {alerts.Query{ID: second}, []uuid.UUID{second}},
		"a page":       {alerts.Query{Page: telematics.Page{Before: 3, Limit: 1}}, []uuid.UUID{second}},
		"a NUL":        {alerts.Query{Rule: "a\x00"}, nil},
	} {
		var got []uuid.UUID
		for _, a := range w.find(c.query) {
			got = append(got, a.ID)
		}
		assert.DeepEqual(t, got, c.want, "%s", name)
	}
	if open, err := w.store.Open(t.Context()); err != nil || len(open) != 2 {
		t.Errorf("open: %v, %v", open, err)
	}
}

func TestAcknowledge_TheFirstOneStays(t *testing.T) {
	w := newWorld(t)
	id := w.add(alerts.LeftOpen, 1, 7, "")
	if _, err := w.store.Acknowledge(t.Context(), id, 2, "", by("eva")); !isNotFound(err) {
		t.Errorf("by another agency: %v", err)
	}
	first, err := w.store.Acknowledge(t.Context(), id, 1, "a note", by("eva"))
	if err != nil || first.Seen == nil || first.Seen.By != "eva" || first.Seen.Note != "a note" || !first.Cleared.IsZero() ||
		first.Opened.Sub(first.Since) != time.Minute {
		t.Fatalf("acknowledged: %+v, %v", first, err)
	}
	again, err := w.store.Acknowledge(t.Context(), id, 0, "another", by("tom"))
	if err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("acknowledged again: %+v, %v, want %+v", again, err, first)
	}
	assert.DeepEqual(t, w.takeEvents(), []string{"acknowledged left_open 7"}, "events")
	entries, err := activity.New(w.db).Activities(t.Context(), telematics.ActivityQuery{Action: alerts.Acknowledge})
	if err != nil || len(entries) != 1 || entries[0].Actor.Subject != "eva" || entries[0].Note != "a note" || entries[0].Vehicle != 7 ||
		entries[0].Outcome != telematics.Executed {
		t.Errorf("audit log: %+v, %v", entries, err)
	}
}

func isNotFound(err error) bool {
	var e *telematics.Error
	return errors.As(err, &e) && e.Code == alerts.NotFound
}

func TestSettings_AreOfAnAgencyAndComplete(t *testing.T) {
	w := newWorld(t)
	limit := 12.0
	set := []alerts.Setting{
		{Rule: alerts.Battery12VLow, For: time.Minute, Levels: []alerts.Level{{Severity: alerts.Critical, Limit: &limit}}},
		{Rule: alerts.LeftOpen, Off: true, Levels: []alerts.Level{{Severity: alerts.Info}}},
	}
	require.NoError(t, w.store.SetSettings(t.Context(), 1, set, by("eva")))
	if got, err := w.store.Settings(t.Context(), 1); err != nil || !reflect.DeepEqual(got, alerts.Complete(set)) {
		t.Errorf("settings: %+v, %v", got, err)
	}
	if got, err := w.store.Settings(t.Context(), 2); err != nil || !reflect.DeepEqual(got, alerts.Defaults()) {
		t.Errorf("settings of the other agency: %+v, %v", got, err)
	}
	var e *telematics.Error
	if _, err := w.store.Settings(t.Context(), 3); !errors.As(err, &e) || e.Code != telematics.AgencyNotFound {
		t.Errorf("settings of no agency: %v", err)
	}
	if err := w.store.SetSettings(t.Context(), 3, set, by("eva")); !errors.As(err, &e) || e.Code != telematics.AgencyNotFound {
		t.Errorf("set for no agency: %v", err)
	}
	entries, err := activity.New(w.db).Activities(t.Context(), telematics.ActivityQuery{Agency: 1})
	if err != nil || len(entries) != 1 || entries[0].Action != alerts.RulesChange {
		t.Errorf("audit log: %+v, %v", entries, err)
	}
}

func TestPrune_RemovesWhatWasClearedBefore(t *testing.T) {
	w := newWorld(t)
	old, recent := w.add(alerts.LeftOpen, 1, 7, ""), w.add(alerts.LeftOpen, 1, 8, "")
	w.add(alerts.LeftOpen, 1, 9, "")
	w.exec(`update alerts set cleared_at = $2 where id = $1`, old, w.now.Add(-time.Second))
	w.exec(`update alerts set cleared_at = $2 where id = $1`, recent, w.now)
	for _, c := range []struct {
		dryRun bool
		left   int
	}{{true, 3}, {false, 2}} {
		if n, err := Prune(t.Context(), w.db, w.now, c.dryRun); n != 1 || err != nil {
			t.Errorf("removed %d, %v; want 1", n, err)
		}
		if left := len(w.find(alerts.Query{})); left != c.left {
			t.Errorf("%d alerts are left, want %d", left, c.left)
		}
	}
}
