package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/telematics"
)

// remote is a running service.
type remote struct {
	URL   string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"Where the service runs (default ${default})."`
	Token string `required:"" placeholder:"TOKEN" help:"Access token of an administrator."`
}

// vehicle is one of its vehicles.
type vehicle struct {
	remote
	Vehicle int64 `arg:"" help:"Number of the vehicle."`
}

func (v vehicle) call(ctx context.Context, method, path string, body any, headers ...string) error {
	return v.remote.call(ctx, method, fmt.Sprintf("vehicles/%d/%s", v.Vehicle, path), body, headers...)
}

// manner is how a command is to be carried out.
type manner struct {
	Wait  int    `env:"-" placeholder:"SECONDS" help:"How long the vehicle may take, 1 to 30 (default the service's)."`
	Async bool   `env:"-" help:"Do not wait for the vehicle."`
	Key   string `name:"idempotency-key" env:"-" placeholder:"KEY" help:"A name for this command: with the same one, within a day, it is not sent twice (default none)."`
}

// headers returns names and values in turn.
func (m manner) headers() ([]string, error) {
	var headers []string
	if m.Wait != 0 {
		if wait := time.Duration(m.Wait) * time.Second; wait < telematics.MinBudget || wait > telematics.MaxBudget {
			return nil, fmt.Errorf("--wait: want 1 to 30 seconds")
		}
		headers = append(headers, "Prefer", fmt.Sprintf("wait=%d", m.Wait))
	}
	if m.Async {
		headers = append(headers, "Prefer", "respond-async")
	}
	if m.Key != "" {
		headers = append(headers, "Idempotency-Key", m.Key)
	}
	return headers, nil
}

type control struct {
	vehicle
	manner
}

func (c control) Run(ctx context.Context, parsed *kong.Context) error {
	return c.order(ctx, parsed.Selected().Name, nil)
}

func (c control) order(ctx context.Context, action string, body any) error {
	headers, err := c.headers()
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, "control/"+action, body, headers...)
}

type attention struct {
	control
	Signal     string `enum:"horn,lights,both" default:"both" help:"horn, lights or both (default ${default})."`
	DurationMS int    `name:"duration-ms" default:"1000" placeholder:"N" help:"Length of the pulse in milliseconds, 1 to 5000 (default ${default})."`
}

func (a attention) Run(ctx context.Context) error {
	return a.order(ctx, "attention", map[string]any{"signal": a.Signal, "duration_ms": a.DurationMS})
}

type status struct {
	vehicle
	Refresh bool `env:"-" help:"Ask the vehicle's unit first. It wakes the unit, so it is limited."`
	Wait    int  `env:"-" placeholder:"SECONDS" help:"With --refresh: how long the unit may take, 1 to 30 (default the service's)."`
}

func (s status) Run(ctx context.Context) error {
	if !s.Refresh {
		if s.Wait != 0 {
			return errors.New("--wait: only with --refresh, nothing else takes its time")
		}
		return s.call(ctx, http.MethodGet, "status", nil)
	}
	headers, err := manner{Wait: s.Wait}.headers()
	if err != nil {
		return err
	}
	return s.call(ctx, http.MethodGet, "status?refresh=true", nil, headers...)
}

type command struct {
	remote
	ID string `arg:"" help:"Id of the command."`
}

func (c command) Run(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "commands/"+url.PathEscape(c.ID), nil)
}

// call prints what the service answers, and fails where the service did. Headers are names
// and values in turn.
func (r remote) call(ctx context.Context, method, path string, body any, headers ...string) error {
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(ctx, telematics.MaxBudget+10*time.Second)
	defer cancel()
	if !strings.HasPrefix(r.URL, "http://") && !strings.HasPrefix(r.URL, "https://") {
		return fmt.Errorf("--url: %q: want http://host:port, or https://", r.URL)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(r.URL, "/")+"/api/v1/admin/"+path, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	request.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Add(pair[0], pair[1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("%w (is the service running there? see --url)", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return report(answer, response)
}

// envelope is what the service answers with.
type envelope struct {
	Success   bool            `json:"success"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	RequestID string          `json:"request_id"`
	Error     struct {
		Retryable  bool   `json:"retryable"`
		RetryAfter int    `json:"retry_after"`
		CommandID  string `json:"command_id"`
	} `json:"error"`
}

func report(answer []byte, response *http.Response) error {
	var e envelope
	if err := json.Unmarshal(answer, &e); err != nil {
		return fmt.Errorf("%s answered %s, not as Motorpool does", response.Request.URL, response.Status)
	}
	if !e.Success {
		return e.failure()
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, e.Data, "", "  "); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, e.Message)
	fmt.Println(pretty.String())
	return nil
}

// failure says what went wrong, and what one needs next.
func (e envelope) failure() error {
	lines := []string{e.Message}
	switch {
	case e.Error.RetryAfter > 0 && e.Error.Retryable:
		lines = append(lines, fmt.Sprintf("try again in %d s", e.Error.RetryAfter))
	case e.Error.RetryAfter > 0 && e.Error.CommandID != "":
		lines = append(lines, fmt.Sprintf("look again in %d s: motorpool command %s", e.Error.RetryAfter, e.Error.CommandID))
	}
	return errors.New(strings.Join(append(lines, "request "+e.RequestID), "\n"))
}
