package main

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// rented is a booking as administrators read it.
type rented struct {
	ID          int64
	Reference   string
	Status      string
	Start       time.Time  `json:"start_date"`
	End         time.Time  `json:"end_date"`
	ActualStart *time.Time `json:"actual_start"`
	ActualEnd   *time.Time `json:"actual_end"`
	Created     time.Time  `json:"created_at"`
	Client      string
	CanCancel   bool `json:"can_cancel"`
	CanExtend   bool `json:"can_extend"`
	Payment     struct{ Method, Status string }
	Vehicle     struct{ ID int64 }
}

// ask sends a request of an administrator or, with a client's token, one signed by the app of
// agency 1.
func (l *live) ask(method, path, token, body string, into any) int {
	l.Helper()
	request, err := http.NewRequest(method, l.env["BASE_URL"]+path, strings.NewReader(body))
	require.NoError(l, err)
	request.Header.Set("Authorization", "Bearer "+l.env[token])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", l.Name()+path+body)
	if token != "ADMIN_TOKEN" {
		secret, err := hex.DecodeString(l.env["AGENCY_SECRET"])
		require.NoError(l, err)
		raw, query := rental.SplitTarget(path)
		signed := rental.SignedRequest{Method: method, Path: raw, Query: query, Body: []byte(body), Token: l.env[token]}
		request.Header.Set(rental.SignatureHeader, signed.Sign(l.env["AGENCY_KEY_ID"], secret, time.Now(), rand.Text()).String())
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(l, err)
	defer response.Body.Close()
	var answer struct{ Data json.RawMessage }
	require.NoError(l, json.NewDecoder(response.Body).Decode(&answer))
	if into != nil {
		require.NoError(l, json.Unmarshal(answer.Data, into), "%s %s: %d %s", method, path, response.StatusCode, answer.Data)
	}
	return response.StatusCode
}

// must sends a request that has to succeed.
func (l *live) must(method, path, token, body string) {
	l.Helper()
	if status := l.ask(method, path, token, body, nil); status >= 300 {
		l.Fatalf("%s %s: status %d, want success", method, path, status)
	}
}

// booking returns a booking of the demo.
func (l *live) booking(variable string) (b rented) {
	l.Helper()
	if status := l.ask(http.MethodGet, "/api/v1/admin/bookings/"+l.env[variable], "ADMIN_TOKEN", "", &b); status != 200 {
		l.Fatalf("the booking %s is %q: status %d", variable, l.env[variable], status)
	}
	return b
}

// record changes the database directly, without the service.
func (l *live) record(change string) {
	l.Helper()
	db, err := sql.Open("postgres", strings.Trim(l.env["MOTORPOOL_DATABASE_URL"], "'"))
	require.NoError(l, err)
	defer db.Close()
	storetest.Exec(l, db, change)
}

// whole checks that the bookings of the demo are in the state that a developer expects.
func (l *live) whole(variables ...string) {
	l.Helper()
	now := time.Now()
	for _, name := range variables {
		b := l.booking(name)
		switch name {
		case "BOOKING_ACTIVE", "BOOKING_OTHER":
			l.eventually("the payment of "+name+" has a result", func() bool {
				b = l.booking(name)
				return b.Payment.Status != "pending"
			})
			hours := b.Start.Equal(b.Start.Truncate(time.Hour)) && b.End.Equal(b.End.Truncate(time.Hour))
			if b.Status != "active" || b.Payment.Status != "paid" || !hours || b.Start.After(now) || !b.End.After(now.Add(time.Hour)) ||
				!b.CanExtend {
				l.Errorf("%s is %+v, want it active, paid and extendable", name, b)
			}
			l.free(b)
		case "BOOKING_UPCOMING", "BOOKING_OTHER_AGENCY":
			if b.Status != "upcoming" || b.Payment.Status != "pending" || !b.CanCancel || !b.Start.After(now.Add(2*time.Hour)) ||
				b.ActualStart != nil {
				l.Errorf("%s is %+v, want it upcoming and cancellable", name, b)
			}
		case "BOOKING_COMPLETED":
			if b.Status != "completed" || b.Payment.Status != "paid" || b.End.After(now) || b.ActualStart == nil || b.ActualEnd == nil ||
				!b.ActualEnd.After(*b.ActualStart) ||
				b.Created.After(b.Start) {
				l.Errorf("%s is %+v, want it completed and paid", name, b)
			}
		}
	}
}

// free checks that the vehicle is not booked for a day after a booking, so that the booking can be
// extended.
func (l *live) free(b rented) {
	l.Helper()
	var all []rented
	l.ask(http.MethodGet, "/api/v1/admin/bookings?limit=200", "ADMIN_TOKEN", "", &all)
	for _, other := range all {
		live := other.Status == "upcoming" || other.Status == "active"
		if live && other.ID != b.ID && other.Vehicle.ID == b.Vehicle.ID && other.Start.Before(b.End.Add(24*time.Hour)) {
			l.Errorf("booking %d of vehicle %d follows the demo's booking %d within a day", other.ID, b.Vehicle.ID, b.ID)
		}
	}
}

func TestWorld_KeepsItsDataRemovesItsFilesAndRestoresTheBookings(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	first := begin(t, dir)
	if r := first.call(http.MethodPost, "vehicles/1/control/lock", "ADMIN_TOKEN"); r.status != 200 {
		t.Fatalf("lock: %d %+v", r.status, r.Error)
	}
	for _, name := range []string{
		"BASE_URL", "INTERNAL_URL", "MQTT_URL", "MQTT_SERVICE_URL", "MQTT_USERNAME", "MQTT_PASSWORD", "ADMIN_TOKEN", "AGENCY_ADMIN_TOKEN",
		"CLIENT_TOKEN",
	} {
		if first.env[name] == "" {
			t.Errorf("the env file lacks %s", name)
		}
	}
	first.whole("BOOKING_ACTIVE", "BOOKING_OTHER", "BOOKING_UPCOMING", "BOOKING_OTHER_AGENCY", "BOOKING_COMPLETED")
	for name, value := range first.env {
		if value == "" {
			t.Errorf("the env file has no value for %s", name)
		}
	}
	if len(strings.TrimSpace(first.env["MOTORPOOL_AGENCY_SECRETS_KEY"])) != 64 {
		t.Error("the env file lacks the sealing key that 'motorpool agency key add' needs")
	}
	var newest []rented
	if first.ask(http.MethodGet, "/api/v1/client/bookings", "CLIENT_TOKEN", "", &newest); len(newest) != 3 ||
		newest[2].Status != "completed" || newest[2].Created.After(newest[1].Created) {
		t.Errorf("client-1's bookings are not newest first: %+v", newest)
	}

	// A developer ends one booking, and leaves a card that is to be declined as the default;
	// cancels another and takes its vehicle; then the world is not used for days.
	first.must(http.MethodPost, "/api/v1/admin/bookings/"+first.env["BOOKING_OTHER"]+"/end", "ADMIN_TOKEN", "")
	first.must(
		http.MethodPost, "/api/v1/client/payment-methods", "OTHER_CLIENT_TOKEN",
		`{"payment_method_id":"pm_card_chargeCustomerFail","set_default":true}`,
	)
	first.must(http.MethodPost, "/api/v1/client/bookings/"+first.env["BOOKING_UPCOMING"]+"/cancel", "CLIENT_TOKEN", "")
	start := time.Now().UTC().Truncate(time.Hour).Add(2 * time.Hour)
	taken, err := json.Marshal(map[string]any{
		"agency_id": 1, "client": "client-2", "vehicle_id": 2, "pickup_station_id": 1, "dropoff_station_id": 1,
		"start_date": start, "end_date": start.Add(72 * time.Hour),
	})
	require.NoError(t, err)
	first.must(http.MethodPost, "/api/v1/admin/bookings", "ADMIN_TOKEN", string(taken))
	first.record( // immediately before the stop: the service ends what is over
		`update bookings set start_at = start_at - interval '72 hours', end_at = end_at - interval '72 hours',
			started_at = started_at - interval '72 hours', created_at = created_at - interval '72 hours'
		where state in ('active', 'upcoming') and vehicle_id <> 2`,
	)
	require.NoError(t, first.stop())
	if !strings.Contains(first.out.String(), "control/lock") {
		// The world writes its files before it prints: only after the stop is the output complete.
		t.Errorf("the output has no command to paste: %s", first.out)
	}
	for _, name := range []string{envFile, unitsFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s still exists after the end", name)
		}
	}

	again := begin(t, dir, func(f *flags) { f.Without = []telematics.VehicleID{8} })
	var commands []struct{ Action string }
	r := again.call(http.MethodGet, "vehicles/1/commands", "ADMIN_TOKEN")
	if err := json.Unmarshal(r.Data, &commands); err != nil || len(commands) != 1 || commands[0].Action != "lock" {
		t.Errorf("the second run does not have the command of the first: %s %v", r.Data, err)
	}
	var logins map[string]login
	units, err := os.ReadFile(filepath.Join(dir, unitsFile))
	if err != nil || json.Unmarshal(units, &logins) != nil || logins["8"].Password == "" {
		t.Errorf("units.json lacks the login of vehicle 8: %s %v", units, err)
	}
	if r := again.call(http.MethodPost, "vehicles/1/control/unlock", "ADMIN_TOKEN"); r.status != 200 {
		t.Errorf("unlock in the second run: %d %+v", r.status, r.Error)
	}
	again.whole("BOOKING_ACTIVE", "BOOKING_OTHER", "BOOKING_OTHER_AGENCY", "BOOKING_COMPLETED")
	for _, kept := range []string{"BOOKING_ACTIVE", "BOOKING_OTHER_AGENCY", "BOOKING_COMPLETED", "AGENCY_KEY_ID", "AGENCY_SECRET"} {
		if again.env[kept] != first.env[kept] {
			t.Errorf("%s was %s and is now %s, want it unchanged", kept, first.env[kept], again.env[kept])
		}
	}
	if again.env["BOOKING_OTHER"] == first.env["BOOKING_OTHER"] || again.booking("BOOKING_OTHER").Payment.Method != "Mastercard •••• 4444" {
		t.Errorf("the ended booking %s was not replaced: %+v", first.env["BOOKING_OTHER"], again.booking("BOOKING_OTHER"))
	}
	if id, there := again.env["BOOKING_UPCOMING"]; there {
		t.Errorf("booking %s is for a vehicle that is booked", id)
	}
}

// bookAtAnotherAgency moves vehicle 8 to agency 2, and books it there.
func (l *live) bookAtAnotherAgency() {
	l.Helper()
	l.must(http.MethodPatch, "/api/v1/admin/vehicles/8", "ADMIN_TOKEN", `{"agency_id":2}`)
	start := time.Now().UTC().Truncate(time.Hour).Add(2 * time.Hour)
	booked, err := json.Marshal(map[string]any{
		"agency_id": 2, "client": "client-3", "vehicle_id": 8, "pickup_station_id": 4, "dropoff_station_id": 4,
		"start_date": start, "end_date": start.Add(time.Hour),
	})
	require.NoError(l, err)
	l.must(http.MethodPost, "/api/v1/admin/bookings", "ADMIN_TOKEN", string(booked))
}

// What a developer has changed stops no start, and comes first where the demo's record is refused:
// a vehicle that is booked at another agency, and has no unit any more; a code that another agency
// has now; a station of another agency. The rest is as in the demo again.
func TestWorld_StartsWhateverADeveloperHasChanged(t *testing.T) {
	t.Parallel()
	dir, shared := t.TempDir(), onSharedPostgres(t)
	first := begin(t, dir, shared)
	first.record(`update agencies set code = 'ISAR' where id = 1`)
	first.record(`insert into agencies (id, code, name) values (77, 'MUC', 'Another one')`)
	first.record(`update stations set agency_id = 2 where id = 1`)
	first.must(http.MethodPost, "/api/v1/admin/bookings/"+first.env["BOOKING_OTHER"]+"/end", "ADMIN_TOKEN", "")
	first.bookAtAnotherAgency()
	first.must(http.MethodPatch, "/api/v1/admin/vehicles/8", "ADMIN_TOKEN", `{"unit":null}`)
	first.must(http.MethodPatch, "/api/v1/admin/vehicles/6", "ADMIN_TOKEN", `{"hourly_rate":null,"color":"pink"}`)
	require.NoError(t, first.stop())

	again := begin(t, dir, shared)
	var moved, other struct {
		Agency int64 `json:"agency_id"`
		Color  string
	}
	again.ask(http.MethodGet, "/api/v1/admin/vehicles/8", "ADMIN_TOKEN", "", &moved)
	again.ask(http.MethodGet, "/api/v1/admin/vehicles/6", "ADMIN_TOKEN", "", &other)
	if moved.Agency != 2 || other.Color == "pink" {
		t.Errorf("vehicle 8 %+v, want it at agency 2; vehicle 6 %+v, want it as in the demo", moved, other)
	}
	again.whole("BOOKING_ACTIVE", "BOOKING_UPCOMING", "BOOKING_OTHER_AGENCY", "BOOKING_COMPLETED")
	if id, there := again.env["BOOKING_OTHER"]; there {
		t.Errorf("booking %s begins at a station of another agency", id)
	}
}
