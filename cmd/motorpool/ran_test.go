package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// ran is a command line that was run.
type ran struct {
	*testing.T
	args          []string
	printed, said string // on standard output and on standard error
	err           error
}

func tool(t *testing.T, args ...string) ran {
	t.Helper()
	printed, said, err := runTool(t, args...)
	return ran{t, args, printed, said, err}
}

// serving is a service that the environment names, with the token "secret", until the test ends. It
// returns the requests so far: method, target and body.
func serving(t *testing.T, answer http.HandlerFunc) *[]string {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+strings.TrimPrefix(r.RequestURI, "/api/v1/admin/")+" "+string(body)))
		assert.Equal(t, r.Header.Get("Authorization"), "Bearer secret", "the token of %s", r.URL)
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("MOTORPOOL_URL", server.URL)
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	return asked
}

// says is a service that always answers with a text.
func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// done is the answer of a service that has done what was asked, with data.
func done(data string) string { return `{"success":true,"message":"Done.","data":` + data + `}` }

// runTool returns what a command prints to standard output and to standard error, and its error.
func runTool(t *testing.T, args ...string) (printed, said string, failure error) {
	t.Helper()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = writer
	printed, failure = output(t, args...)
	os.Stderr = stderr
	_ = writer.Close()
	messages, err := io.ReadAll(reader)
	require.NoError(t, err)
	return strings.TrimSpace(printed), string(messages), failure
}

// must reports a condition that does not hold.
func (r ran) must(holds bool, want string, about ...any) ran {
	r.Helper()
	if !holds {
		r.Errorf("motorpool %s\nprints %q\nand says %q,\nexit code %d, %v;\nwant "+want, append([]any{
			strings.Join(r.args, " "), r.printed, r.said, exitCode(r.err), r.err,
		}, about...)...)
	}
	return r
}

func (r ran) succeeds() ran {
	r.Helper()
	return r.must(r.err == nil, "no error")
}

// prints checks that it has succeeded, and has printed the texts in this order.
func (r ran) prints(texts ...string) ran {
	r.Helper()
	return r.must(r.err == nil && inOrder(r.printed, texts...), "it to print %q", texts)
}

// printsOnly checks that it has succeeded, and has printed a text.
func (r ran) printsOnly(text string) ran {
	r.Helper()
	return r.must(r.err == nil && r.printed == strings.TrimSpace(text), "it to print %q alone", text)
}

// hasLine checks that it has succeeded, and has printed a line that begins with one word and has
// another.
func (r ran) hasLine(first, word string) ran {
	r.Helper()
	return r.must(r.err == nil && lineHas(r.printed, first, word), "it to print a line of %q with %q", first, word)
}

// says checks that it has succeeded, and what it has printed to standard error, in this order.
func (r ran) says(texts ...string) ran {
	r.Helper()
	return r.must(r.err == nil && inOrder(r.said, texts...), "it to say %q", texts)
}

func (r ran) saysOnly(text string) ran {
	r.Helper()
	return r.must(r.err == nil && r.said == text, "it to say %q alone", text)
}

// fails checks that its error has the texts in this order.
func (r ran) fails(texts ...string) ran {
	r.Helper()
	return r.must(r.err != nil && inOrder(r.err.Error(), texts...), "an error with %q", texts)
}

func (r ran) failsWith(text string) ran {
	r.Helper()
	return r.must(r.err != nil && r.err.Error() == text, "the error %q", text)
}

func (r ran) exits(code int) ran {
	r.Helper()
	return r.must(exitCode(r.err) == code, "the exit code %d", code)
}
