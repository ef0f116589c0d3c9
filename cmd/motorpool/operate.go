package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/telematics"
)

// remote is a running service.
type remote struct {
	URL     string `default:"http://127.0.0.1:8080" placeholder:"URL" help:"Where the service runs (default ${default})."`
	Token   string `required:"" placeholder:"TOKEN" help:"Access token of an administrator."`
	Vehicle int64  `arg:"" help:"Number of the vehicle."`
}

type control struct{ remote }

func (c control) Run(ctx context.Context, parsed *kong.Context) error {
	return c.call(ctx, http.MethodPost, "control/"+parsed.Selected().Name, nil)
}

type attention struct {
	remote
	Signal     string `enum:"horn,lights,both" default:"both" help:"horn, lights or both (default ${default})."`
	DurationMS int    `name:"duration-ms" default:"1000" placeholder:"N" help:"Length of the pulse in milliseconds, 1 to 5000 (default ${default})."`
}

func (a attention) Run(ctx context.Context) error {
	return a.call(ctx, http.MethodPost, "control/attention", map[string]any{"signal": a.Signal, "duration_ms": a.DurationMS})
}

type status struct{ remote }

func (s status) Run(ctx context.Context) error {
	return s.call(ctx, http.MethodGet, "status", nil)
}

// call prints what the service answers, and fails where the service did.
func (r remote) call(ctx context.Context, method, path string, body any) error {
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
	url := fmt.Sprintf("%s/api/v1/admin/vehicles/%d/%s", strings.TrimRight(r.URL, "/"), r.Vehicle, path)
	request, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	request.Header.Set("Content-Type", "application/json")
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

func report(answer []byte, response *http.Response) error {
	var envelope struct {
		Success bool            `json:"success"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(answer, &envelope); err != nil {
		return fmt.Errorf("%s answered %s, not as Motorpool does", response.Request.URL, response.Status)
	}
	if !envelope.Success {
		if after := response.Header.Get("Retry-After"); after != "" {
			return fmt.Errorf("%s (look again in %s s)", envelope.Message, after)
		}
		return errors.New(envelope.Message)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, envelope.Data, "", "  "); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, envelope.Message)
	fmt.Println(pretty.String())
	return nil
}
