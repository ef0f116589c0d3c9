package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Subscribers subscribe to the live events, divided among the URLs. The job is ready when all are
// subscribed, and runs until Finish. Its result is Delivered.
type Subscribers struct {
	URLs   []string
	Token  string
	Number int
}

// Delivered is what the subscribers received.
type Delivered struct {
	Subscribers []Received             `json:"subscribers"`
	Late        *hdrhistogram.Snapshot `json:"late"` // from the vehicle's time to the subscriber
}

// Received is what one subscriber received.
type Received struct {
	Events   int64  `json:"events"`
	Checksum uint64 `json:"checksum"` // of the ids, in order
	Resets   int    `json:"resets"`
}

const (
	// eventsPath excludes presence events: a fleet that only reports has none.
	eventsPath = "/api/v1/admin/events?event=status"
	// The vehicle's time is read in one of lateSample events of a subscriber.
	lateSample = 50
)

// Do implements Job.
func (s *Subscribers) Do(ctx context.Context, ready func(string)) (any, error) {
	received, late := make([]Received, s.Number), make([]Latencies, s.Number)
	failures := make(chan error, s.Number)
	var subscribed, all sync.WaitGroup
	for i := range received {
		late[i] = NewLatencies()
		subscribed.Add(1)
		all.Go(func() {
			body, err := subscribe(ctx, s.URLs[i%len(s.URLs)], s.Token)
			if err != nil {
				failures <- err
			}
			subscribed.Done()
			if err == nil {
				received[i].read(body, func(at time.Time) { late[i].Add(time.Since(at)) })
			}
		})
	}
	subscribed.Wait()
	if len(failures) > 0 {
		return nil, <-failures
	}
	ready("")
	all.Wait()
	sum := NewLatencies()
	for _, l := range late {
		sum.h.Merge(l.h)
	}
	return Delivered{received, sum.h.Export()}, nil
}

// AddAll adds exported latencies.
func (l Latencies) AddAll(exported *hdrhistogram.Snapshot) { l.h.Merge(hdrhistogram.Import(exported)) }

var streams = &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: -1}}

// subscribe opens a stream of the live events, which ends with the context.
func subscribe(ctx context.Context, url, token string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+eventsPath, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := streams.Do(request)
	if err != nil {
		return nil, fmt.Errorf("subscribe to events: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, errors.Join(fmt.Errorf("subscribe to events: %s: %s", response.Status, text), err, response.Body.Close())
	}
	return response.Body, nil
}

// read reads events until the stream ends, and calls onTime with the vehicle's time in some of
// them.
func (r *Received) read(stream io.ReadCloser, onTime func(time.Time)) {
	defer stream.Close()
	sum := fnv.New64a()
	var event string
	var id []byte
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "id":
			id = append(id[:0], value...)
		case "event":
			event = string(value)
		case "data":
			if event == "status" && r.Events%lateSample == 0 {
				_, text, _ := bytes.Cut(value, []byte(`"at":"`))
				text, _, _ = bytes.Cut(text, []byte(`"`))
				if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
					onTime(at)
				}
			}
		case "": // the event is complete
			switch event {
			case "status":
				r.Events++
				_, _ = sum.Write(id) // never fails
				r.Checksum = sum.Sum64()
			case "reset":
				r.Resets++
			}
			event = ""
		}
	}
}
