package service_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// answer is the complete response of the service.
type answer struct {
	*testing.T
	asked  string // method and target
	status int
	header http.Header
	text   string
	body   map[string]any // numbers keep their text
}

// ask sends a request, and checks what must be true of every response. It repeats what a server
// without an answer in time has prevented, as a client does: this happens on a busy machine.
func ask(t *testing.T, request *http.Request) answer {
	t.Helper()
	a := askOnce(t, request)
	for range mostRepeats {
		if code := a.code(); code != "service_unavailable" && code != "telematics_unavailable" {
			break
		}
		time.Sleep(5 * repeatAfter)
		if request.GetBody != nil {
			body, err := request.GetBody()
			require.NoError(t, err)
			request.Body = body
		}
		a = askOnce(t, request)
	}
	return a
}

func askOnce(t *testing.T, request *http.Request) answer {
	t.Helper()
	asked := request.Method + " " + request.URL.RequestURI()
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err, "%s", asked)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err, "%s", asked)
	a := answer{T: t, asked: asked, status: response.StatusCode, header: response.Header, text: string(text)}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&a.body), "%s: %d %.300s", asked, a.status, text)
	a.checkEnvelope(strings.HasPrefix(request.URL.Path, "/api/v1/client/"))
	return a
}

var envelopeTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// checkEnvelope compares the response with section 2.1 of the interface, and errors with their part
// of the contract.
func (a answer) checkEnvelope(ofClient bool) {
	a.Helper()
	success := a.status < 300
	want := []string{"data", "message", "request_id", "success", "timestamp"}
	switch code := a.at("error.code"); {
	case success && ofClient:
		want = append(want, "meta")
	case success && a.body["meta"] != nil: // a list for administrators
		want = append(want, "meta")
	case !success:
		want = append(want, "error")
		if code == "validation_failed" {
			want = append(want, "errors")
		}
	}
	slices.Sort(want)
	assert.EqualSlices(a, slices.Sorted(maps.Keys(a.body)), want, "%s: %d has the keys", a.asked, a.status)
	message, _ := a.body["message"].(string)
	id, _ := a.body["request_id"].(string)
	at, _ := a.body["timestamp"].(string)
	_, notUUID := uuid.Parse(id)
	if a.body["success"] != success || message == "" || notUUID != nil || a.header.Get("X-Request-ID") != id ||
		!envelopeTime.MatchString(at) ||
		!strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		a.Errorf("%s: status %d with a wrong body or header %v: %s", a.asked, a.status, a.header, a.text)
	}
	if strings.Contains(a.asked, " /api") && a.header.Get("Cache-Control") != "no-store" {
		a.Errorf("%s may be cached: %v", a.asked, a.header)
	}
	if !success {
		a.checkError()
	}
}

func (a answer) checkError() {
	a.Helper()
	body, _ := a.body["error"].(map[string]any)
	want := []string{"code", "command_id", "detail", "doc_url", "outcome", "reason", "retry_after", "retryable"}
	if body["code"] == "return_not_possible" {
		want = slices.Insert(want, 0, "checks")
	}
	if got := slices.Sorted(maps.Keys(body)); !slices.Equal(got, want) || a.body["data"] != nil {
		a.Errorf("%s: the error has the keys %v, want %v; data %v", a.asked, got, want, a.body["data"])
	}
	after := ""
	if n, ok := body["retry_after"].(json.Number); ok {
		after = n.String()
	}
	if body["retryable"] != true {
		after = "" // a caller that obeys the header would repeat the request
	}
	assert.Equal(a, a.header.Get("Retry-After"), after, "%s: Retry-After", a.asked)
	scheme, _, _ := strings.Cut(a.header.Get("WWW-Authenticate"), " ")
	want401 := ""
	switch code, _ := body["code"].(string); {
	case strings.HasPrefix(code, "agency_signature_"):
		want401 = "Motorpool-Signature"
	case a.status == http.StatusUnauthorized:
		want401 = "Bearer"
	}
	assert.Equal(a, scheme, want401, "%s: %d with a challenge of the scheme", a.asked, a.status)
	if (a.status == http.StatusMethodNotAllowed) != (a.header.Get("Allow") != "") {
		a.Errorf("%s: %d with Allow %q", a.asked, a.status, a.header.Get("Allow"))
	}
}

// at returns the value at a path, such as data.pricing.total or data.0.id; nil: none.
func (a answer) at(path string) any {
	var here any = a.body
	for step := range strings.SplitSeq(path, ".") {
		switch value := here.(type) {
		case map[string]any:
			here = value[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(value) {
				return nil
			}
			here = value[i]
		default:
			return nil
		}
	}
	return here
}

// code returns the code of the error; empty: none.
func (a answer) code() string {
	code, _ := a.at("error.code").(string)
	return code
}

// wants checks the status and the code of an error, empty for none. The test continues after a
// failure.
func (a answer) wants(status int, code string) answer {
	a.Helper()
	if a.status != status || a.code() != code {
		a.Errorf("%s: %d %s, want %d %s", a.asked, a.status, a.text, status, code)
	}
	return a
}

// has checks the JSON values at paths; the arguments are alternating paths and values.
func (a answer) has(pairs ...string) answer {
	a.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		got, _ := json.Marshal(a.at(pair[0])) // the value was decoded from JSON
		if string(got) != pair[1] {
			a.Errorf("%s: %s is %s, want %s", a.asked, pair[0], got, pair[1])
		}
	}
	return a
}

// number returns the whole number at a path; zero: none.
func (a answer) number(path string) int64 {
	n, _ := a.at(path).(json.Number)
	i, _ := n.Int64() // zero if it is no number
	return i
}

// list returns the elements of the array at a path.
func (a answer) list(path string) []any {
	list, _ := a.at(path).([]any)
	return list
}

// word returns the string at a path; empty: none.
func (a answer) word(path string) string {
	s, _ := a.at(path).(string)
	return s
}
