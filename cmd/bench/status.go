package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"motorpool/cmd/internal/service"
)

// status measures the reading of a vehicle's status, each read with a durable line in the history.
type status struct {
	stage
	Vehicles    int           `default:"1000" placeholder:"N" help:"Vehicles, all of which have reported (default ${default})."`
	Connections []int         `default:"1,64" placeholder:"N,…" help:"Kept alive; each with one request at a time (default ${default})."`
	Duration    time.Duration `default:"10s" placeholder:"DURATION" help:"Of one round (default ${default})."`
	Rounds      int           `default:"3" placeholder:"N" help:"Of the floor and of the service, in turn (default ${default})."`
}

type statusResult struct {
	Machine  machine     `json:"machine"`
	Bytes    int         `json:"answer_bytes"`
	Postgres string      `json:"postgres"`
	Steps    steps       `json:"steps"`
	Reads    []readsOver `json:"reads"`
}

// readsOver is what was measured over a number of connections.
type readsOver struct {
	Connections int         `json:"connections"`
	Floor       []callRound `json:"floor"`
	Service     []callRound `json:"service"`
	Ratio       float64     `json:"ratio"`            // of the medians of requests a second
	Beyond      float64     `json:"p50_beyond_floor"` // milliseconds, of the medians
}

type callRound struct {
	called
	Lines int64            `json:"history_lines"` // written meanwhile
	Used  map[string]usage `json:"used"`

	warmed int64 // answered before
}

func (s status) Run(ctx context.Context) error {
	result := statusResult{Machine: thisMachine()}
	err := s.measure(ctx, &result)
	return errors.Join(err, s.print(os.Stdout, result))
}

func (s status) measure(ctx context.Context, result *statusResult) (err error) {
	w, err := s.newWorld(ctx, s.Vehicles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.tearDown()) }()
	n, err := w.serve(ctx)
	if err != nil {
		return err
	}
	w.later(n.Close)
	eyes, err := openWitness(w.postgres.URL())
	if err != nil {
		return err
	}
	defer eyes.close()
	if result.Postgres, err = eyes.durable(ctx); err != nil {
		return err
	}
	if err := (&load{world: w, lines: 1}).settleIn(ctx, n.Internal+"/metrics"); err != nil {
		return err
	}
	body, err := w.keepAnswer(ctx, n)
	if err != nil {
		return err
	}
	result.Bytes = len(body)
	floor, address, err := attend(ctx, "answer", "--body", w.path("answer.json"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, floor.stop()) }()
	if result.Steps, err = eyes.measureSteps(ctx, s.Duration/2); err != nil {
		return err
	}
	for _, connections := range s.Connections {
		over := readsOver{Connections: connections}
		for round := range s.Rounds {
			say("%d connections: round %d of %d", connections, round+1, s.Rounds)
			bare, err := again(ctx, func() (callRound, error) {
				return s.round(ctx, w, "http://"+address, connections, meters{"floor": floor.pid()})
			}, noneRefused)
			if err != nil {
				return err
			}
			served, err := s.recorded(ctx, w, n, eyes, connections)
			if err != nil {
				return err
			}
			over.Floor, over.Service = append(over.Floor, bare), append(over.Service, served)
		}
		over.Ratio = median(of(over.Service, perSecond)) / median(of(over.Floor, perSecond))
		over.Beyond = median(of(over.Service, p50)) - median(of(over.Floor, p50))
		result.Reads = append(result.Reads, over)
	}
	return result.sound()
}

// sound returns an error where an answer and its line in the history do not match.
func (r statusResult) sound() error {
	var failures []error
	for _, over := range r.Reads {
		for _, round := range over.Service {
			if round.Lines != round.Answered || round.Refused > 0 {
				failures = append(failures, fmt.Errorf("%d connections: %d answered, %d refused, %d lines in the history",
					over.Connections, round.Answered, round.Refused, round.Lines))
			}
		}
	}
	return errors.Join(failures...)
}

func (s status) round(ctx context.Context, w *world, url string, connections int, m meters) (callRound, error) {
	var r callRound
	before, err := m.read()
	if err != nil {
		return r, err
	}
	caller, err := work(ctx, &r.called, "call", "--url", url, "--token", w.admin, "--vehicles", strconv.Itoa(w.vehicles),
		"--connections", strconv.Itoa(connections), "--for", s.Duration.String())
	if err != nil {
		return r, err
	}
	after, err := m.read()
	if err != nil {
		return r, err
	}
	r.Used = used(before, after)
	r.Used["caller"] = caller
	return r, nil
}

// recorded is a round of the service, with the lines that the history has of it.
func (s status) recorded(ctx context.Context, w *world, n *service.Instance, eyes *witness, connections int) (callRound, error) {
	before, err := eyes.lines(ctx)
	if err != nil {
		return callRound{}, err
	}
	r, err := s.round(ctx, w, n.Public, connections, meters{"service": n.PID(), "postgres": w.postgres.PID(), "redis": w.redis.PID()})
	if err != nil {
		return r, err
	}
	after, err := eyes.lines(ctx)
	r.Lines = after - before
	return r, err
}

// keepAnswer keeps one answer of the service, for the floor to give.
func (w *world) keepAnswer(ctx context.Context, n *service.Instance) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, statusURL(n.Public, 1), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.admin)
	response, err := asker.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("read status: %d: %s", response.StatusCode, body)
	}
	return body, errors.Join(err, os.WriteFile(w.path("answer.json"), body, 0o600))
}

func perSecond(r callRound) float64 { return r.Rate }
func p50(r callRound) float64       { return r.P50 }

func (r statusResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	fmt.Fprintf(to, "answers of %d bytes; Postgres with %s\n\n", r.Bytes, r.Postgres)
	fmt.Fprintln(to, "\t/s\tp50 ms\tp90 ms\tp99 ms\tmax ms\thistory lines\tµs CPU a read: server\tPostgres\t")
	for _, over := range r.Reads {
		for i := range over.Service {
			f, s := over.Floor[i], over.Service[i]
			fmt.Fprintf(to, "floor, %d connections\t%.0f\t%s\t\t%.0f\t\t\n", over.Connections, f.Rate, f.quantiles, f.cost("floor"))
			fmt.Fprintf(to, "service, %d connections\t%.0f\t%s\t%d of %d\t%.0f\t%.0f\t\n", over.Connections, s.Rate, s.quantiles,
				s.Lines, s.Answered, s.cost("service"), s.cost("postgres"))
		}
	}
	fmt.Fprintf(to, "one commit\t\t%s\t\t\t\t\n", r.Steps.Commit)
	fmt.Fprintf(to, "one read by primary key\t\t%s\t\t\t\t\n", r.Steps.Read)
	fmt.Fprintln(to)
	for _, over := range r.Reads {
		fmt.Fprintf(to, "%d connections: ratio of the medians %.2f; p50 %.2f ms beyond the floor\n", over.Connections, over.Ratio, over.Beyond)
	}
}

// cost is microseconds of CPU for each answer.
func (r callRound) cost(process string) float64 {
	return r.Used[process].CPU / float64(r.Answered) * 1e6
}

// String is four cells of a table.
func (q quantiles) String() string {
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f", q.P50, q.P90, q.P99, q.Max)
}
