package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"motorpool/cmd/internal/service"
)

// follow is a process with many readers of the live events. It says when all of them read. Told how many events there were, it
// waits until each reader has them, for catchUp at most, and prints what they saw.
type follow struct {
	URL     []string
	Token   string
	Behind  string `help:"Id of the event behind which all begin."`
	Readers int
}

// followed is what they saw.
type followed struct {
	Readers []seen                 `json:"readers"`
	Late    *hdrhistogram.Snapshot `json:"late"` // how long after the vehicle's time events came
}

const (
	// eventsPath leaves out presence, of which a fleet that only reports has none.
	eventsPath = "/api/v1/admin/events?event=status"
	// sampleEvery is between two events of one reader in which the time is read.
	sampleEvery = 50
)

func (f follow) Run(ctx context.Context) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: -1}}
	readers := make([]scanner, f.Readers)
	late := make([]latencies, f.Readers)
	var open, all sync.WaitGroup
	failures := make(chan error, f.Readers)
	for i := range readers {
		late[i] = newLatencies()
		readers[i].sample, readers[i].late = sampleEvery, func(at time.Time) { late[i].add(time.Since(at)) }
		open.Add(1)
		all.Go(func() {
			body, err := openStream(ctx, client, f.URL[i%len(f.URL)], f.Token, f.Behind)
			open.Done()
			if err != nil {
				failures <- err
				return
			}
			defer body.Close()
			readers[i].read(body)
		})
	}
	open.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	fmt.Println(f.Readers)
	if err := awaitEvents(ctx, os.Stdin, readers); err != nil {
		return err
	}
	leave()
	all.Wait()
	result := followed{}
	sum := newLatencies()
	for i := range readers {
		result.Readers = append(result.Readers, readers[i].seen)
		sum.h.Merge(late[i].h)
	}
	result.Late = sum.h.Export()
	return json.NewEncoder(os.Stdout).Encode(result)
}

// catchUp is how long a reader may be behind the others at the end.
const catchUp = 20 * time.Second

func awaitEvents(ctx context.Context, told io.Reader, readers []scanner) error {
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		return fmt.Errorf("told nothing: %w", err)
	}
	events, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return err
	}
	_ = service.Eventually(ctx, catchUp, "all readers have all events", func(context.Context) bool { // the result says who has not
		for i := range readers {
			if readers[i].told.Load() < events {
				return false
			}
		}
		return true
	})
	return nil
}

// read reads until the stream ends.
func (s *scanner) read(body io.Reader) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := body.Read(buffer)
		s.take(buffer[:n])
		if err != nil {
			return
		}
	}
}

// openStream returns the live events, behind an id if there is one.
func openStream(ctx context.Context, client *http.Client, url, token, behind string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+eventsPath, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if behind != "" {
		request.Header.Set("Last-Event-ID", behind)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("follow events: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("follow events: %d: %s", response.StatusCode, said)
	}
	return response.Body, nil
}
