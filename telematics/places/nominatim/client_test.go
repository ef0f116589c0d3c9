package nominatim_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/places/nominatim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var here = telematics.Position{Latitude: 48.14131, Longitude: -11.5578}

// ask sends a request to a handler in place of the server.
func ask(t *testing.T, handler http.HandlerFunc, change ...func(*nominatim.Config)) (string, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	config := nominatim.Config{URL: server.URL, Version: "1.2.3"}
	for _, c := range change {
		c(&config)
	}
	client, err := nominatim.New(config)
	require.NoError(t, err)
	defer client.Close()
	return client.Address(t.Context(), here)
}

func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

func TestAddress_SendsTheRequestOfTheAPI(t *testing.T) {
	var got *http.Request
	address, err := ask(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		says(http.StatusOK, `{"place_id":1,"lat":"48.1","lon":"-11.5","display_name":"1, Arnulfstraße, München"}`)(w, r)
	}, func(c *nominatim.Config) { c.URL, c.Contact = c.URL+"/maps/?key=k1", "fleet@example.com" })
	if err != nil || address != "1, Arnulfstraße, München" {
		t.Errorf("Address = %q, %v; want the place's short address", address, err)
	}
	want := "/maps/reverse?addressdetails=0&format=jsonv2&key=k1&lat=48.14131&lon=-11.5578&zoom=18"
	if got.Method != http.MethodGet || got.RequestURI != want {
		t.Errorf("request %s %s, want GET %s", got.Method, got.RequestURI, want)
	}
	assert.Equal(t, got.UserAgent(), "motorpool/1.2.3 (+fleet@example.com)", "User-Agent")
}

func TestAddress_UserAgentWithoutAContactNamesTheProgram(t *testing.T) {
	var agent string
	_, _ = ask(t, func(_ http.ResponseWriter, r *http.Request) { agent = r.UserAgent() }, func(c *nominatim.Config) { c.Version = "" })
	assert.Equal(t, agent, "motorpool/dev", "User-Agent")
}

func TestAddress_PlaceWithoutAnAddressIsNoError(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusNotFound} {
		if address, err := ask(t, says(status, `{"error":"Unable to geocode"}`)); address != "" || err != nil {
			t.Errorf("status %d: %q, %v; want no address and no error", status, address, err)
		}
	}
}

func TestAddress_FailureHasTheTimeToWait(t *testing.T) {
	inAnHour := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  int
		atLeast time.Duration
	}{
		"too many requests":                 {says(429, "", "Retry-After", "90"), 429, 90 * time.Second},
		"too many requests, until a date":   {says(429, "", "Retry-After", inAnHour), 429, 59 * time.Minute},
		"too many requests, without a time": {says(429, "slow down"), 429, 0},
		"a negative time":                   {says(429, "", "Retry-After", "-5"), 429, 0},
		"unavailable":                       {says(503, "", "Retry-After", "7"), 503, 7 * time.Second},
		"broken":                            {says(500, `{"display_name":"not so"}`), 500, 0},
		"blocked":                           {says(403, "<html>blocked</html>"), 403, time.Hour},
		"key refused":                       {says(401, `{"error":"Invalid key"}`), 401, time.Hour},
		"an unknown path":                   {says(404, "<html>not found</html>"), 404, 0},
		"a request that it refuses":         {says(400, `{"error":{"code":400,"message":"no"}}`), 400, 0},
		"a redirect":                        {says(302, "", "Location", "http://127.0.0.1:1/reverse"), 302, 0},
		"no JSON":                           {says(200, "<xml/>"), 200, 0},
		"an empty answer":                   {says(200, ""), 200, 0},
		"another error":                     {says(200, `{"error":"Database unavailable"}`), 200, 0},
		"an error that is an object":        {says(200, `{"error":{"code":500}}`), 200, 0},
		"no address":                        {says(200, `{"display_name":"  "}`), 200, 0},
		"an address with a NUL":             {says(200, `{"display_name":"a\u0000b"}`), 200, 0},
		"an address that is too long":       {says(200, `{"display_name":"`+strings.Repeat("a", 2000)+`"}`), 200, 0},
		"an answer that is too long":        {says(200, `{"display_name":"a"}`+strings.Repeat(" ", 70<<10)), 200, 0},
	} {
		address, err := ask(t, c.handler)
		var unavailable *nominatim.Unavailable
		if !errors.As(err, &unavailable) {
			t.Errorf("%s: address %q, %v; want an error with the time to wait", name, address, err)
			continue
		}
		if unavailable.Status != c.status || unavailable.RetryAfter() < c.atLeast || unavailable.RetryAfter() > c.atLeast+time.Minute {
			t.Errorf("%s: status %d, retry after %v; want %d, %v", name, unavailable.Status, unavailable.RetryAfter(), c.status, c.atLeast)
		}
	}
}

func TestClient_WaitsForAServerUntilItsTimeout(t *testing.T) {
	gone := make(chan struct{})
	start := time.Now()
	_, err := ask(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(gone) },
		func(c *nominatim.Config) { c.Timeout = 50 * time.Millisecond })
	if err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("after %v: %v, want an error at the timeout", time.Since(start), err)
	}
	<-gone
}

func TestAddress_ErrorHasNeitherThePlaceNorTheKey(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	client, err := nominatim.New(nominatim.Config{URL: closed.URL + "?key=secret"})
	require.NoError(t, err)
	_, err = client.Address(context.Background(), here)
	if err == nil {
		t.Fatal("a closed server answered")
	}
	for _, leak := range []string{"secret", "48.1", "11.5"} {
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), leak) {
			t.Errorf("the error %q has %q", err, leak)
		}
	}
	for _, bad := range []string{"", "ftp://host", "https://", "host:80", "https://h o/?key=secret"} {
		if _, err := nominatim.New(nominatim.Config{URL: bad}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("URL %q: %v, want an error without the key", bad, err)
		}
	}
	if _, err := nominatim.New(nominatim.Config{URL: "https://host", Contact: "a\r\nX: y"}); err == nil {
		t.Error("a contact with another header was accepted")
	}
}
