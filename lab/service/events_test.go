package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/telematics"
)

// streamed is an event of a stream, of any kind.
type streamed struct {
	ID      string
	Event   string
	Vehicle int `json:"vehicle_id"`
	Command struct {
		ID    string `json:"id"`
		State string `json:"state"`
	} `json:"command"`
	Connectivity struct{ Status string } `json:"connectivity"`
	Telemetry    map[string]any          `json:"telemetry"`
}

// follower reads a stream.
type follower struct {
	close func()

	mu       sync.Mutex
	streamed []streamed
	last     string
}

// follow opens a stream of an instance, after a given event if any.
func (i *instance) follow(token, after string) *follower {
	i.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.base+"/api/v1/admin/events", nil)
	i.must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(request)
	i.must(err)
	if response.StatusCode != http.StatusOK {
		i.Fatalf("the stream has the status %d", response.StatusCode)
	}
	f := &follower{}
	var reading sync.WaitGroup
	reading.Go(func() {
		f.read(bufio.NewScanner(response.Body))
		_ = response.Body.Close()
	})
	f.close = sync.OnceFunc(func() { cancel(); reading.Wait() })
	i.Cleanup(f.close)
	i.eventually(10*time.Second, "the stream begins", func() bool { return f.lastID() != "" })
	return f
}

func (f *follower) read(lines *bufio.Scanner) {
	lines.Buffer(nil, 1<<20)
	var e streamed
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		f.mu.Lock()
		switch field {
		case "id":
			e.ID, f.last = value, value
		case "event":
			e.Event = value
		case "data":
			_ = json.Unmarshal([]byte(value), &e) // an unreadable event is then missing
		case "":
			if e.Event != "" {
				f.streamed = append(f.streamed, e)
			}
			e = streamed{}
		}
		f.mu.Unlock()
	}
}

func (f *follower) lastID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *follower) has(what func(streamed) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.streamed, what)
}

// statesOf returns the states of a command in the order in which they were published.
func (f *follower) statesOf(id string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var states []string
	for _, e := range f.streamed {
		if e.Event == "command" && e.Command.ID == id {
			states = append(states, e.Command.State)
		}
	}
	return states
}

func TestEvents_OfOneInstanceAreStreamedByTheOther(t *testing.T) {
	t.Parallel()
	s := startStack(t, 2)
	s.interval = time.Second
	here, there := s.serve(), s.serve()
	all := there.follow(there.admin, "")
	own := there.follow(s.token(telematics.Actor{Subject: "of-one", Role: telematics.Admin, Agency: 1}), "")
	s.drive(nil, healthy)
	for vehicle := 1; vehicle <= 2; vehicle++ {
		s.eventually(20*time.Second, "its connection is streamed", func() bool {
			return all.has(func(e streamed) bool {
				return e.Event == "presence" && e.Vehicle == vehicle && e.Connectivity.Status == "online"
			})
		})
		s.eventually(20*time.Second, "its report is streamed", func() bool {
			return all.has(func(e streamed) bool { return e.Event == "status" && e.Vehicle == vehicle && len(e.Telemetry) > 0 })
		})
		id := here.control(vehicle, telematics.Lock).word("data.id")
		s.eventually(10*time.Second, "its command is streamed", func() bool { return slices.Contains(all.statesOf(id), "succeeded") })
		if states := all.statesOf(id); states[0] != "accepted" || !slices.Contains(states, "sent") {
			s.Errorf("the streamed states are %v, want accepted first and sent", states)
		}
	}
	s.eventually(
		10*time.Second, "the agency gets its events",
		func() bool { return own.has(func(e streamed) bool { return e.Vehicle == 1 }) },
	)
	if own.has(func(e streamed) bool { return e.Vehicle == 2 }) {
		s.Error("an agency received an event of another's vehicle")
	}
}
