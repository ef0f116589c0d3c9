package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/sandbox"
)

// bench is a sandbox with a client.
type bench struct {
	*testing.T
	*sandbox.Server
	client *http.Client
}

func newBench(t *testing.T, change ...func(*sandbox.Config)) *bench {
	t.Helper()
	var config sandbox.Config
	for _, c := range change {
		c(&config)
	}
	server, err := sandbox.Start(config)
	require.NoError(t, err)
	// On an open connection net/http repeats requests automatically.
	b := &bench{T: t, Server: server, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		assert.NoError(t, server.Close())
	})
	return b
}

// reply is a decoded response.
type reply struct {
	*testing.T
	status int
	header http.Header
	body   map[string]any
}

func withKey(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Idempotency-Key", key) }
}

func as(key string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key) }
}

// try sends a request; the parameters are alternating names and values.
func (b *bench) try(method, path string, parameters []string, change ...func(*http.Request)) (reply, error) {
	b.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(parameters); i += 2 {
		form.Add(parameters[i], parameters[i+1])
	}
	target, body := b.URL()+path, strings.NewReader(form.Encode())
	if method == http.MethodGet {
		target, body = target+"?"+form.Encode(), strings.NewReader("")
	}
	request, err := http.NewRequestWithContext(b.Context(), method, target, body)
	require.NoError(b, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+b.Key())
	for _, c := range change {
		c(request)
	}
	response, err := b.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{T: b.T, status: response.StatusCode, header: response.Header}
	if len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &r.body); err != nil {
			b.Fatalf("%s %s: %v\n%s", method, path, err, text)
		}
	}
	return r, nil
}

func (b *bench) do(method, path string, parameters []string, change ...func(*http.Request)) reply {
	b.Helper()
	r, err := b.try(method, path, parameters, change...)
	require.NoError(b, err)
	return r
}

func (b *bench) post(path string, parameters ...string) reply {
	b.Helper()
	return b.do(http.MethodPost, path, parameters)
}

func (b *bench) get(path string, parameters ...string) reply {
	b.Helper()
	return b.do(http.MethodGet, path, parameters)
}

// wants checks the status, and the type and code of an error.
func (r reply) wants(status int, kind, code string) reply {
	r.Helper()
	e, _ := r.body["error"].(map[string]any)
	gotKind, _ := e["type"].(string)
	gotCode, _ := e["code"].(string)
	if r.status != status || gotKind != kind || gotCode != code {
		r.Fatalf("response %d %q %q, want %d %q %q: %v", r.status, gotKind, gotCode, status, kind, code, r.body)
	}
	return r
}

// text returns a text field of the response.
func (r reply) text(name string) string {
	r.Helper()
	value, ok := r.body[name].(string)
	if !ok {
		r.Fatalf("the response has no text %q: %v", name, r.body)
	}
	return value
}

func (b *bench) customer() string {
	b.Helper()
	return b.post("/v1/customers", "description", "one").wants(200, "", "").text("id")
}

func (b *bench) attach(customer, token string) string {
	b.Helper()
	return b.post("/v1/payment_methods/"+token+"/attach", "customer", customer).wants(200, "", "").text("id")
}

// intent creates a payment of 10 €.
func (b *bench) intent(customer string, more ...string) string {
	b.Helper()
	parameters := append(
		[]string{
			"amount", "1000", "currency", "eur", "customer", customer, "payment_method_types[0]", "card",
			"metadata[charge_id]", "c-1",
		},
		more...)
	return b.post("/v1/payment_intents", parameters...).wants(200, "", "").text("id")
}
