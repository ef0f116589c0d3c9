package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/httpapi"
	"motorpool/httpapi/stream"
	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// now is the time of all tests that need no other.
var now = time.Date(2026, 1, 2, 10, 0, 0, 250_000_000, time.UTC)

// api is the handler under test, with fakes for its dependencies.
type api struct {
	t          *testing.T
	handler    http.Handler
	controller *controller
	fleet      *fleet
	bulks      *bulks
	halts      *halts
	history    *history
	agencyKeys *agencyKeys
	areas      *areaRegistry
	alerts     *alertStore
	signatures *signatures
	log        *logbook
}

func newAPI(t *testing.T, change ...func(*httpapi.Config)) *api {
	t.Helper()
	return newAPIBy(t, httpapi.New, change...)
}

func newAPIBy(t *testing.T, build func(httpapi.Config) http.Handler, change ...func(*httpapi.Config)) *api {
	t.Helper()
	a := &api{
		t: t,
		controller: &controller{send: func(_ context.Context, o delivery.Order) (telematics.Command, error) {
			return settled(o, telematics.Succeeded), nil
		}, start: func(_ context.Context, o delivery.Order) (delivery.Receipt, error) {
			return delivery.Receipt{Command: new(accepted(o))}, nil
		}},
		bulks: &bulks{byID: map[telematics.BulkID]telematics.Bulk{}},
		fleet: &fleet{twins: map[telematics.VehicleID]telematics.Twin{
			1: twin(1, 1), 2: twin(2, 1), 42: twin(42, 1), 9: twin(9, 2),
		}},
		halts:      &halts{agencies: []telematics.AgencyID{1, 2}},
		history:    &history{},
		agencyKeys: newAgencyKeys(),
		areas:      &areaRegistry{byName: map[string]areas.Placed{}},
		alerts:     newAlertStore(),
		signatures: &signatures{used: map[string]bool{}},
		log:        &logbook{},
	}
	a.controller.many = broker.Many{
		Bulks: a.bulks, FindByKey: a.bulks.FindByKey, Record: a.history.Record, Now: func() time.Time { return now },
		Logger: slog.New(slog.DiscardHandler),
	}
	config := httpapi.Config{
		Controller: a.controller, Fleet: a.fleet, Map: a.fleet, Commands: a.fleet, Activities: a.fleet, Bulks: a.bulks,
		History: a.history, Refusals: a.history,
		Units: a.fleet, Agencies: a.fleet, Editor: a.fleet, AgencyKeys: a.agencyKeys, AgencyKeyRegistry: a.agencyKeys, Areas: a.areas,
		Alerts: a.alerts, Signatures: a.signatures, CompareClock: func(context.Context) error { return nil }, Nudge: func() {},
		BookingChanged: func(rental.Booking) {}, SigningKey: func() string { return "" }, AreasAt: areasAt{}, Places: placeNames{},
		Watches: &watches{}, Telemetry: &telemetry{}, Halts: a.halts, Tokens: tokensWith(validKeys), Feed: stream.New(stream.Config{}),
		Log: slog.New(slog.NewJSONHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return now },
	}
	for _, c := range change {
		c(&config)
	}
	a.handler = build(config)
	return a
}

// accepted is what the broker returns for an order that it has just accepted.
func accepted(o delivery.Order) telematics.Command {
	c := settled(o, telematics.Accepted)
	c.ID, c.Attempts, c.SentAt, c.Completed, c.Reported, c.Bulk = uuid.New(), 0, time.Time{}, time.Time{}, nil, o.Bulk
	return c
}

// settled is what the broker returns for an order that has ended in a state.
func settled(o delivery.Order, s telematics.State) telematics.Command {
	return telematics.Command{
		ID:      uuid.MustParse("0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9"),
		Vehicle: o.Vehicle, Agency: 1, Unit: "unit-1", Action: o.Action, Booking: o.Booking, Attention: o.Attention,
		Lane: o.Action.Lane(), Actor: o.Actor, RequestID: o.RequestID, State: s, Attempts: 1,
		Requested: now.Add(-2310 * time.Millisecond),
		SentAt:    now.Add(-2300 * time.Millisecond), Completed: now, Deadline: now.Add(7690 * time.Millisecond),
		Assurance: telematics.Promises{Signed: true, Expiring: true, Deduplicated: true, Confirmed: true},
		Reported:  &telematics.Report{At: now, Values: map[telematics.Field]any{telematics.IsLocked: true}},
	}
}

// logbook is a log that may be read while it is written.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// response is a recorded answer.
type response struct {
	t       *testing.T
	request string // method and target
	status  int
	header  http.Header
	text    string
	body    struct {
		Success   bool
		Message   string
		Data      any
		Meta      map[string]any
		Error     *wireError
		Errors    map[string][]string
		RequestID string `json:"request_id"`
		Timestamp string
	}
}

type wireError struct {
	Code       string
	Retryable  bool
	RetryAfter *int `json:"retry_after"`
	Outcome    *string
	CommandID  *string `json:"command_id"`
	Reason     *string
	Detail     *string
}

func withHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

func withJSON(body string) func(*http.Request) {
	return func(r *http.Request) {
		withBody(body)(r)
		r.Header.Set("Content-Type", "application/json")
	}
}

func withBody(body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body = io.NopCloser(strings.NewReader(body))
		r.ContentLength = int64(len(body))
	}
}

// disconnected is of a caller that has closed its connection.
func disconnected(r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	*r = *r.WithContext(ctx)
}

// keyed sends an idempotency key.
func keyed(key string) func(*http.Request) { return withHeader("Idempotency-Key", key) }

// changes are those of a request.
type changes = []func(*http.Request)

// anonymous removes the token.
func anonymous(r *http.Request) { r.Header.Del("Authorization") }

func withToken(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// do sends a request, unless changed, as the administrator of all agencies, and checks the answer
// against the contract.
func (a *api) do(method, target string, change ...func(*http.Request)) *response {
	a.t.Helper()
	request := httptest.NewRequest(method, target, nil)
	request.Header.Set("Authorization", "Bearer "+adminToken())
	for _, c := range change {
		c(request)
	}
	signIfClients(request)
	// The checking library reads the request as it arrived, not what the handler left of it.
	arrived := request.Clone(context.Background())
	recorded := httptest.NewRecorder()
	a.handler.ServeHTTP(recorded, request)
	checkContract(a.t, arrived, recorded)
	r := &response{t: a.t, request: method + " " + target, status: recorded.Code, header: recorded.Header(), text: recorded.Body.String()}
	if strings.HasPrefix(recorded.Header().Get("Content-Type"), "application/json") &&
		(strings.HasPrefix(target, "/api") || strings.HasPrefix(target, "/webhooks")) {
		if err := json.Unmarshal(recorded.Body.Bytes(), &r.body); err != nil {
			a.t.Fatalf("%s %s: %v\n%s", method, target, err, r.text)
		}
		if d := goDuration.FindString(r.body.Message + fmt.Sprint(r.body.Errors)); d != "" {
			a.t.Errorf("the response has the duration %q, which is not of people: %s", d, r.text)
		}
		same(a.t, r.body.RequestID, r.header.Get("X-Request-ID"), "request_id")
	}
	return r
}

// goDuration matches a duration as Go prints it.
var goDuration = regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ns|µs|ms|s)\b|\b\d+h\d+m`)

func (a *api) get(target string, change ...func(*http.Request)) *response {
	a.t.Helper()
	return a.do(http.MethodGet, target, change...)
}

func (a *api) post(target string, change ...func(*http.Request)) *response {
	a.t.Helper()
	return a.do(http.MethodPost, target, change...)
}

// wants checks the status and the error code; an empty code: no error.
func (r *response) wants(status int, code string) *response {
	r.t.Helper()
	got := ""
	if r.body.Error != nil {
		got = r.body.Error.Code
	}
	if r.status != status || got != code {
		r.t.Fatalf("%s: answered %d %q, want %d %q\n%s", r.request, r.status, got, status, code, r.text)
	}
	return r
}

// answers checks the status of an answer without an envelope.
func (r *response) answers(status int) *response {
	r.t.Helper()
	same(r.t, r.status, status, "%s: status of %s", r.request, r.text)
	return r
}

// invalid checks that the request is refused with errors for the fields.
func (r *response) invalid(fields ...string) *response {
	r.t.Helper()
	r.wants(422, "validation_failed")
	for _, field := range fields {
		if len(r.body.Errors[field]) == 0 {
			r.t.Errorf("%s: errors %v, want one for %s", r.request, r.body.Errors, field)
		}
	}
	return r
}

// has checks values of the data: pairs of a path with dots, empty for the whole, and its value.
func (r *response) has(pairs ...any) *response {
	r.t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		path := pair[0].(string)
		if got := r.at(strings.FieldsFunc(path, func(c rune) bool { return c == '.' })...); !reflect.DeepEqual(got, pair[1]) {
			r.t.Errorf("%s: %s is %v, want %v\n%s", r.request, cmp.Or(path, "the data"), got, pair[1], r.text)
		}
	}
	return r
}

// meta checks members of meta: pairs of a name and its value.
func (r *response) meta(pairs ...any) *response {
	r.t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		same(r.t, r.body.Meta[pair[0].(string)], pair[1], "%s: meta.%s", r.request, pair[0])
	}
	return r
}

// heads checks headers: pairs of a name and its value; empty: absent.
func (r *response) heads(pairs ...string) *response {
	r.t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		same(r.t, r.header.Get(pair[0]), pair[1], "%s: the header %s", r.request, pair[0])
	}
	return r
}

// lists checks how many items the data has.
func (r *response) lists(n int) *response {
	r.t.Helper()
	if list, ok := r.body.Data.([]any); !ok || len(list) != n {
		r.t.Errorf("%s: the data is not a list of %d\n%s", r.request, n, r.text)
	}
	return r
}

// mentions checks that the message has a text.
func (r *response) mentions(text string) *response {
	r.t.Helper()
	if !strings.Contains(r.body.Message, text) {
		r.t.Errorf("%s: message %q, want it to contain %q", r.request, r.body.Message, text)
	}
	return r
}

// shows checks that the answer has texts.
func (r *response) shows(texts ...string) *response {
	r.t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.text, text) {
			r.t.Errorf("%s: want %s in %s", r.request, text, r.text)
		}
	}
	return r
}

// hides checks that the answer has none of texts.
func (r *response) hides(texts ...string) *response {
	r.t.Helper()
	for _, text := range texts {
		if strings.Contains(r.text, text) {
			r.t.Errorf("%s: want no %s in %s", r.request, text, r.text)
		}
	}
	return r
}

// says checks the message.
func (r *response) says(message string) *response {
	r.t.Helper()
	same(r.t, r.body.Message, message, "%s: message", r.request)
	return r
}

// same reports a value that is not as wanted.
func same[T any](t testing.TB, got, want T, what string, words ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", fmt.Sprintf(what, words...), got, want)
	}
}

// logged is what a test expects of an audit log entry: the members that it sets.
type logged = telematics.Activity

// wantsEntries checks that the audit log has these entries and no others.
func (a *api) wantsEntries(want ...logged) {
	a.t.Helper()
	got := a.history.all()
	if len(got) != len(want) {
		a.t.Errorf("%d audit log entries, want %d: %+v", len(got), len(want), got)
		return
	}
	for i := range want {
		like(a.t, got[i], want[i], fmt.Sprint("audit log entry ", i))
	}
}

func (a *api) lastEntry() logged {
	entries := a.history.all()
	return entries[len(entries)-1]
}

// like checks the values of a struct that another one sets.
func like[T any](t testing.TB, got, want T, what string) {
	t.Helper()
	if !isLike(reflect.ValueOf(got), reflect.ValueOf(want)) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func isLike(got, want reflect.Value) bool {
	switch {
	case want.IsZero():
		return true
	case want.Kind() != reflect.Struct || want.Type() == reflect.TypeFor[time.Time]():
		return reflect.DeepEqual(got.Interface(), want.Interface())
	}
	for i := range want.NumField() {
		if !isLike(got.Field(i), want.Field(i)) {
			return false
		}
	}
	return true
}

// wantsRetryAfter checks retry_after in the body, and that the header is the same where repeating
// is safe, and absent elsewhere.
func (r *response) wantsRetryAfter(seconds string) *response {
	r.t.Helper()
	inHeader := ""
	if r.body.Error.Retryable {
		inHeader = seconds
	}
	same(r.t, r.header.Get("Retry-After"), inHeader, "Retry-After")
	inBody, _ := json.Marshal(r.body.Error.RetryAfter)
	if want := seconds; want == "" && string(inBody) != "null" || want != "" && string(inBody) != want {
		r.t.Errorf("retry_after %s, want %q", inBody, seconds)
	}
	return r
}

// at returns the value at a path of names, or of indices of lists, in the data.
func (r *response) at(path ...string) any {
	r.t.Helper()
	value := r.body.Data
	for _, name := range path {
		if list, ok := value.([]any); ok {
			if i, err := strconv.Atoi(name); err == nil && i < len(list) {
				value = list[i]
				continue
			}
		}
		object, ok := value.(map[string]any)
		if !ok {
			r.t.Fatalf("no object that could have %q\n%s", name, r.text)
		}
		value, ok = object[name]
		if !ok {
			r.t.Fatalf("no member %v\n%s", path, r.text)
		}
	}
	return value
}
