package alertmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/alerts"
	"motorpool/internal/assert"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// receiver is an Alertmanager that keeps what it was sent.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []postable
	bodies int
	status int // zero: 200
}

func startReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies++
		if r.status != 0 {
			w.Header().Set("Location", r.URL)
			http.Error(w, "not now", r.status)
			return
		}
		var list []postable
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil || request.URL.Path != "/am/api/v2/alerts" || request.Method != http.MethodPost {
			t.Errorf("%s %s: %v", request.Method, request.URL, err)
		}
		r.got = append(r.got, list...)
	}))
	t.Cleanup(r.Close)
	return r
}

// take returns what has arrived since the last call, by severity.
func (r *receiver) take() []postable {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	slices.SortFunc(got, func(a, b postable) int { return strings.Compare(a.Labels["severity"], b.Labels["severity"]) })
	return got
}

type world struct {
	*Sender
	t    *testing.T
	at   time.Time
	list []alerts.Alert
	err  error
	log  bytes.Buffer
}

func newWorld(t *testing.T, receivers ...*receiver) *world {
	w := &world{t: t, at: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)}
	var list []string
	for _, r := range receivers {
		list = append(list, strings.Replace(r.URL, "//", "//user:hush@", 1)+"/am/")
	}
	urls, err := ParseURLs(strings.Join(list, ", "))
	require.NoError(t, err)
	w.Sender = New(Config{
		URLs: urls, Console: "https://fleet.example.com", Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Open: func(context.Context) ([]alerts.Alert, error) { return w.list, w.err }, Now: func() time.Time { return w.at },
		Metrics: prometheus.NewRegistry(),
	})
	return w
}

// after looks again after a time.
func (w *world) after(d time.Duration) { w.at = w.at.Add(d); w.look(w.t.Context()) }

var low = alerts.Alert{
	Rule: alerts.Battery12VLow, Severity: alerts.Warning, Agency: 1, Vehicle: 42, Plate: "M-IM 42",
	Opened: time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC), Facts: map[string]any{"volts": 12.1},
}

func TestSender_SendsRepeatsRaisesAndEndsAnAlert(t *testing.T) {
	r := startReceiver(t)
	w := newWorld(t, r)
	w.after(0)
	if got := r.take(); len(got) != 0 || r.bodies != 0 {
		t.Errorf("sent %v without an alert", got)
	}
	w.list = []alerts.Alert{low}
	w.after(5 * time.Second)
	got := r.take()
	if len(got) != 1 || !got[0].StartsAt.Equal(low.Opened) || !got[0].EndsAt.Equal(w.at.Add(3*time.Minute)) ||
		got[0].GeneratorURL != "https://fleet.example.com/console/#/vehicles/42" ||
		got[0].Annotations["summary"] != "M-IM 42: 12 V battery is low (12.1 V)" {
		t.Fatalf("sent %+v", got)
	}
	want := `{"agency":"1","alertname":"battery_12v_low","plate":"M-IM 42","service":"motorpool","severity":"warning","vehicle":"42"}`
	assert.Equal(t, key(got[0].Labels), want, "labels")
	w.after(55 * time.Second)
	if got := r.take(); len(got) != 0 {
		t.Errorf("sent again after 55 s: %v", got)
	}
	w.after(5 * time.Second)
	if got := r.take(); len(got) != 1 || !got[0].EndsAt.Equal(w.at.Add(3*time.Minute)) {
		t.Errorf("not repeated after a minute: %v", got)
	}
	w.list[0].Severity = alerts.Critical
	w.after(5 * time.Second)
	if got := r.take(); len(got) != 2 || got[0].Labels["severity"] != "critical" || !got[0].EndsAt.After(w.at) ||
		!got[1].EndsAt.Equal(w.at) {
		t.Errorf("raised: %+v", got)
	}
	w.list = nil
	w.after(5 * time.Second)
	if got := r.take(); len(got) != 1 || got[0].Labels["severity"] != "critical" || !got[0].EndsAt.Equal(w.at) {
		t.Errorf("cleared: %+v", got)
	}
	w.after(time.Hour)
	if got := r.take(); len(got) != 0 {
		t.Errorf("sent after its end: %v", got)
	}
}

// Otherwise what was cleared since its last read would stay open for minutes.
func TestSender_SendsTheLastEndsWhenItStops(t *testing.T) {
	r := startReceiver(t)
	w := newWorld(t, r)
	w.list = []alerts.Alert{low}
	w.after(0)
	w.list = nil
	stopped, stop := context.WithCancel(t.Context())
	stop()
	assert.NoError(t, w.Run(stopped))
	if got := r.take(); len(got) != 2 || !got[1].EndsAt.Equal(w.at) {
		t.Errorf("sent %+v", got)
	}
}

func TestSender_AnUnavailableAlertmanagerGetsAllLaterAndDelaysNoOther(t *testing.T) {
	broken, healthy := startReceiver(t), startReceiver(t)
	w := newWorld(t, broken, healthy)
	w.list = []alerts.Alert{low}
	broken.status = http.StatusInternalServerError
	w.after(0)
	w.after(5 * time.Second)
	if got := healthy.take(); len(got) != 1 {
		t.Errorf("the other got %v", got)
	}
	broken.status = http.StatusTemporaryRedirect // to an address that is not configured
	w.after(5 * time.Second)
	if got := broken.take(); len(got) != 0 || broken.bodies != 3 {
		t.Errorf("%d requests; followed a redirect with %v", broken.bodies, got)
	}
	broken.status = 0
	w.after(5 * time.Second)
	if got := broken.take(); len(got) != 1 || healthy.bodies != 1 {
		t.Errorf("got %v; the other %d requests", got, healthy.bodies)
	}
	text := w.log.String()
	if strings.Count(text, "alertmanager unavailable") != 2 || strings.Count(text, "outage ended") != 1 ||
		strings.Contains(text, "hush") {
		t.Errorf("logged:\n%s", text)
	}
	assert.Equal(t, metricstest.Sum(t, w.Metrics, `motorpool_alertmanager_requests_total{result="failed"}`), 3, "failures counted")
	broken.Close()
	w.after(time.Hour)
	if text := w.log.String(); strings.Count(text, "outage began") != 2 || strings.Contains(text, "hush") {
		t.Errorf("logged:\n%s", text)
	}
}

// While Postgres is unavailable, alerts do not end at the Alertmanager.
func TestSender_RepeatsTheLastAlertsWhileTheyCannotBeRead(t *testing.T) {
	r := startReceiver(t)
	w := newWorld(t, r)
	w.err = errors.New("down")
	w.after(0)
	w.err, w.list = nil, []alerts.Alert{low}
	w.after(5 * time.Second)
	w.err, w.list = errors.New("down"), nil
	w.after(time.Minute)
	w.after(time.Minute)
	if got := r.take(); len(got) != 3 || !got[2].EndsAt.After(w.at) {
		t.Errorf("sent %+v", got)
	}
	if n := strings.Count(w.log.String(), "outage began"); n != 2 {
		t.Errorf("logged %d times:\n%s", n, &w.log)
	}
}

func TestSender_ManyAlertsAreSentInSeveralRequests(t *testing.T) {
	r := startReceiver(t)
	w := newWorld(t, r)
	for i := range 2*batch + 1 {
		one := low
		one.Vehicle, one.Booking = telematics.VehicleID(1+i/2), int64(i%2)
		w.list = append(w.list, one)
	}
	w.after(0)
	if got := r.take(); len(got) != 2*batch+1 || r.bodies != 3 {
		t.Errorf("%d alerts in %d requests", len(got), r.bodies)
	}
}

func TestSender_APersonIsALabelAndLeadsToTheAuditLog(t *testing.T) {
	r := startReceiver(t)
	w := newWorld(t, r)
	w.list = []alerts.Alert{{Rule: alerts.MassAccess, Severity: alerts.Critical, Person: "a b", Seen: &alerts.Acknowledgement{By: "eva"}}}
	w.after(0)
	got := r.take()[0]
	if got.Labels["person"] != "a b" || got.Annotations["console"] != "https://fleet.example.com/console/#/activity?actor=a+b" ||
		got.Labels["vehicle"]+got.Labels["agency"] != "" || got.Annotations["acknowledged_by"] != "eva" {
		t.Errorf("%+v", got)
	}
}

func TestParseURLs_RefusesOthersWithoutQuotingThem(t *testing.T) {
	for _, list := range []string{
		"", "alertmanager:9093", "ftp://hush@host", "http://a,", "https://", "http://h/?token=hush", "http://h/#x",
	} {
		if urls, err := ParseURLs(list); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, %v", list, urls, err)
		}
	}
	urls, err := ParseURLs("http://a:9093, https://user:secret@b/alerts")
	if err != nil || len(urls) != 2 {
		t.Errorf("%v, %v", urls, err)
	}
}
