package service_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

const (
	// mostRepeats is how many times callers repeat a request that a server has prevented by not
	// answering in time: this happens on a busy machine.
	mostRepeats = 5
	// repeatAfter is how long they wait before.
	repeatAfter = 500 * time.Millisecond
)

// ask sends a request, and repeats it as callers do. Package httpapi compares responses with the
// contract.
func (i *instance) ask(request *http.Request) answer {
	i.Helper()
	a := i.askOnce(request)
	for n := 0; n < mostRepeats && a.starved(); n++ {
		time.Sleep(repeatAfter)
		if request.GetBody != nil {
			body, err := request.GetBody()
			i.must(err)
			request.Body = body
		}
		a = i.askOnce(request)
	}
	return a
}

func (i *instance) askOnce(request *http.Request) answer {
	i.Helper()
	a, err := i.try(request)
	require.NoError(i, err, "%s %s", request.Method, request.URL.RequestURI())
	return a
}

// try returns an error where the service did not respond.
func (i *instance) try(request *http.Request) (answer, error) {
	response, err := cmp.Or(i.http, http.DefaultClient).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{
		T: i.T, asked: request.Method + " " + request.URL.RequestURI(), status: response.StatusCode, header: response.Header,
		text: string(text),
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&a.body); err != nil {
		return answer{}, fmt.Errorf("status %d, not a response of the service: %.300s: %w", a.status, text, err)
	}
	return a, nil
}

// starved reports whether a server did not respond in time, so that nothing was done.
func (a answer) starved() bool {
	return a.code() == "service_unavailable" || a.code() == "telematics_unavailable"
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
func (a answer) code() string { return a.word("error.code") }

// wants checks the status, and that each of the words is the code, outcome, reason or detail of the
// error. The test continues after a failure.
func (a answer) wants(status int, words ...string) answer {
	a.Helper()
	said := []string{a.code(), a.word("error.outcome"), a.word("error.reason"), a.word("error.detail")}
	if a.status != status || slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(said, word) }) {
		a.Errorf("%s: %d %s, want %d %q", a.asked, a.status, a.text, status, words)
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
