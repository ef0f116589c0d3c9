package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/httpapi"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/stream"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

const eventsPath = "/api/v1/admin/events"

// live is an instance that serves event streams over TCP.
type live struct {
	*api
	feed   *stream.Feed
	log    *brokertest.Events
	server *http.Server
	base   string
}

// newLive serves a log of events, with changes to the feed's configuration.
func newLive(t *testing.T, log *brokertest.Events, change ...func(*stream.Config)) *live {
	t.Helper()
	return newLiveWith(t, log, func(*httpapi.Config) {}, change...)
}

// newLiveWith changes the API's configuration, too.
func newLiveWith(t *testing.T, log *brokertest.Events, more func(*httpapi.Config), change ...func(*stream.Config)) *live {
	t.Helper()
	l := &live{log: log}
	config := stream.Config{Log: log, Body: resource.NewEvent}
	for _, c := range change {
		c(&config)
	}
	if len(l.log.All()) == 0 { // a log with events, so that streams have a place to begin
		_, err := l.log.Publish(t.Context(), []telematics.Event{{Kind: telematics.ResetEvent, At: now}})
		require.NoError(t, err)
	}
	l.feed = stream.New(config)
	l.api = newAPI(t, func(c *httpapi.Config) { c.Feed = l.feed }, more)
	l.server = httpapi.NewServer("", l.handler)
	l.server.RegisterOnShutdown(l.feed.End)
	l.serve(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(t, l.feed.Run(ctx), "Run")
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return l
}

func (l *live) serve(t *testing.T) {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	l.base = "http://" + listener.Addr().String()
	server := l.server
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		assert.NoError(t, server.Shutdown(ctx), "Shutdown")
		serving.Wait()
	})
}

// serverEvent is one server-sent event.
type serverEvent struct{ id, event, data, retry, comment string }

// eventStream reads server-sent events.
type eventStream struct {
	status int
	header http.Header
	close  func()

	mu     sync.Mutex
	events []serverEvent
	ended  bool
}

func (l *live) follow(query string, change ...func(*http.Request)) *eventStream {
	l.t.Helper()
	transport := &http.Transport{}
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+eventsPath+query, nil)
	require.NoError(l.t, err)
	request.Header.Set("Authorization", "Bearer "+adminToken())
	for _, c := range change {
		c(request)
	}
	response, err := transport.RoundTrip(request)
	require.NoError(l.t, err)
	s := &eventStream{status: response.StatusCode, header: response.Header}
	var reading sync.WaitGroup
	reading.Go(func() {
		s.read(bufio.NewScanner(response.Body))
		_ = response.Body.Close()
	})
	s.close = sync.OnceFunc(func() { cancel(); reading.Wait(); transport.CloseIdleConnections() })
	l.t.Cleanup(s.close)
	return s
}

// read parses events as the HTML standard defines them: an event without its final empty line is
// dropped.
func (s *eventStream) read(lines *bufio.Scanner) {
	lines.Buffer(nil, 1<<20)
	var e serverEvent
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case lines.Text() == "":
			s.add(e)
			e = serverEvent{}
		case field == "":
			e.comment = value
		case field == "id":
			e.id = value
		case field == "event":
			e.event = value
		case field == "data":
			e.data = value
		case field == "retry":
			e.retry = value
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

func (s *eventStream) add(e serverEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// all returns the named events that have arrived, and whether the stream has ended.
func (s *eventStream) all() ([]serverEvent, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	named := slices.DeleteFunc(slices.Clone(s.events), func(e serverEvent) bool { return e.event == "" })
	return named, s.ended
}

// lastID is the ID from which the reader would continue.
func (s *eventStream) lastID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.events) {
		if e.id != "" {
			return e.id
		}
	}
	return ""
}

// await waits until a number of named events have arrived, and returns them.
func (s *eventStream) await(t *testing.T, n int) []serverEvent {
	t.Helper()
	eventually(t, fmt.Sprintf("%d events arrive", n), func() bool { got, _ := s.all(); return len(got) >= n })
	got, _ := s.all()
	return got
}

// awaitBegin waits for the first ID of the stream.
func (s *eventStream) awaitBegin(t *testing.T) *eventStream {
	t.Helper()
	eventually(t, "the stream begins", func() bool { return s.lastID() != "" })
	return s
}

// awaitEnd waits until the stream has ended, and returns the given reason.
func (s *eventStream) awaitEnd(t *testing.T) string {
	t.Helper()
	eventually(t, "the stream ends", func() bool { _, ended := s.all(); return ended })
	got, _ := s.all()
	if len(got) == 0 || got[len(got)-1].event != "end" {
		return ""
	}
	_, reason, _ := strings.Cut(got[len(got)-1].data, `"reason":"`)
	return strings.TrimSuffix(reason, `"}`)
}

func after(id string) func(*http.Request) { return withHeader("Last-Event-ID", id) }

func (l *live) publish(events ...telematics.Event) {
	l.t.Helper()
	_, err := l.log.Publish(context.Background(), events)
	require.NoError(l.t, err)
}

func presence(vehicle telematics.VehicleID, agency telematics.AgencyID) telematics.Event {
	return telematics.Event{
		Kind: telematics.PresenceEvent, Vehicle: vehicle, Agency: agency, At: now,
		Change: &telematics.Change{Vehicle: vehicle, Agency: agency, Presence: telematics.Online, LastSeen: now},
	}
}

// readFrom reads the events of a connection on which the test has written the request.
func (s *eventStream) readFrom(conn net.Conn) {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	defer response.Body.Close()
	s.read(bufio.NewScanner(response.Body))
}
