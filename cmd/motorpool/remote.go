package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"motorpool/telematics"
)

// connection has the flags with which a running service is reached.
type connection struct {
	URL   string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"URL of the service."`
	Token string `placeholder:"TOKEN" help:"Access token of an administrator; better set by the environment."`
}

// remote is a running service, whose answers are printed.
type remote struct {
	connection
	presentation
}

// envelope is the JSON of the service's answers.
type envelope struct {
	Success   bool            `json:"success"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	Meta      pageMeta        `json:"meta"`
	RequestID string          `json:"request_id"`
	Error     struct {
		Code       string `json:"code"`
		Retryable  bool   `json:"retryable"`
		RetryAfter int    `json:"retry_after"`
		Outcome    string `json:"outcome"`
		CommandID  string `json:"command_id"`
	} `json:"error"`
}

type pageMeta struct {
	NextCursor string `json:"next_cursor"`
}

// service follows no redirect: of a change it would make a read, whose success says nothing.
var service = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// call sends a request, and prints the answer. An unsuccessful answer is an error. headers are
// names and values alternately.
func (r remote) call(ctx context.Context, method, path string, body any, headers ...string) error {
	e, err := r.send(ctx, method, path, body, headers...)
	if err != nil {
		return err
	}
	return r.show(e, nil)
}

// send sends a request, and returns the answer. An unsuccessful answer is an error.
func (r connection) send(ctx context.Context, method, path string, body any, headers ...string) (envelope, error) {
	ctx, cancel := context.WithTimeout(ctx, telematics.MaxBudget+10*time.Second)
	defer cancel()
	var reached atomic.Bool // there was a connection, so the request may have been sent
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }})
	request, err := r.request(ctx, method, path, body, headers...)
	if err != nil {
		return envelope{}, err
	}
	response, err := service.Do(request)
	var answer []byte
	if err == nil {
		defer response.Body.Close()
		answer, err = io.ReadAll(response.Body)
	}
	switch {
	case err == nil:
		return readAnswer(answer, response)
	case reached.Load() && method != http.MethodGet:
		return envelope{}, failure{exitUnknown, fmt.Errorf("%w\nthere was no answer: it may have been done", err)}
	}
	return envelope{}, failure{exitUnavailable, fmt.Errorf("%w (is the service running there? see --url)", err)}
}

func (r connection) request(ctx context.Context, method, path string, body any, headers ...string) (*http.Request, error) {
	if r.Token == "" {
		return nil, badUsage("--token: want an access token; set MOTORPOOL_TOKEN")
	}
	if err := checkToken(r.Token); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(r.URL, "http://") && !strings.HasPrefix(r.URL, "https://") {
		return nil, badUsage("--url: %q: want http://host:port, or https://", r.URL)
	}
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(r.URL, "/")+"/api/v1/admin/"+path, reader)
	if err != nil {
		return nil, badUsage("--url: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	if body != nil || method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		if strings.ContainsFunc(pair[1], unicode.IsControl) { // no request could be sent
			return nil, badUsage("%s: %q: want text without the end of a line", pair[0], pair[1])
		}
		request.Header.Add(pair[0], pair[1])
	}
	return request, nil
}

// checkToken returns an error for an access token that no header can have, such as one with the end
// of its line.
func checkToken(token string) error {
	if strings.ContainsAny(token, " \t\r\n") {
		return badUsage("--token: want the access token alone, without 'Bearer' or the end of its line")
	}
	return nil
}

func readAnswer(answer []byte, response *http.Response) (envelope, error) {
	method := response.Request.Method
	var e envelope
	if to := response.Header.Get("Location"); to != "" && response.StatusCode/100 == 3 {
		return e, refused("%s answered %s: give --url the address of %s", response.Request.URL, response.Status, to)
	}
	if err := json.Unmarshal(answer, &e); err != nil {
		return e, failure{foreignExitCode(method, response.StatusCode),
			fmt.Errorf("%s answered %s, not as Motorpool does", response.Request.URL, response.Status)}
	}
	if !e.Success {
		return e, failure{e.exitCode(method, response.StatusCode), e.failure()}
	}
	return e, nil
}

// failure returns what went wrong, and what the user can do next.
func (e envelope) failure() error {
	lines := []string{e.Message}
	switch {
	case e.Error.RetryAfter > 0 && e.Error.Retryable:
		lines = append(lines, fmt.Sprintf("try again in %d s", e.Error.RetryAfter))
	case e.Error.Outcome == "not_executed": // nothing to look at
	case e.Error.Outcome == "failed" && e.Error.CommandID != "": // which is final
		lines = append(lines, "details: motorpool command "+e.Error.CommandID)
	case e.Error.RetryAfter > 0 && e.Error.CommandID != "":
		lines = append(lines, fmt.Sprintf("look again in %d s: motorpool command %s", e.Error.RetryAfter, e.Error.CommandID))
	}
	return errors.New(strings.Join(append(lines, "request "+e.RequestID), "\n"))
}

// show prints data, as a table with the columns, or, without any, with a line for each member.
func (r remote) show(e envelope, columns []column) error {
	fmt.Fprintln(stderr, e.Message)
	if e.Meta.NextCursor != "" {
		fmt.Fprintf(stderr, "there are more: --cursor %s\n", e.Meta.NextCursor)
	}
	return r.print(e.Data, columns)
}
