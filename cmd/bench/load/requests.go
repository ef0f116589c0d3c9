package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"motorpool/telematics"
)

// LockPath is the path of a command, for a vehicle's id.
const LockPath = "/api/v1/admin/vehicles/%d/control/lock"

// Requests sends requests about vehicles in turn, a number at a time, each on a keep-alive
// connection. Its result is Called. Its client is fasthttp's, because the CPU time of the client is
// missing from what is measured.
type Requests struct {
	URLs     []string
	Token    string
	Method   string
	Path     string // with %d for the vehicle
	Vehicles Vehicles
	First    int // turn of the vehicles: those of turns before were in other loads
	InFlight int
	For      time.Duration
}

// Do implements Job.
func (r *Requests) Do(ctx context.Context, _ func(string)) (any, error) {
	clients := make([]*fasthttp.HostClient, len(r.URLs))
	for i, base := range r.URLs {
		u, err := url.Parse(base)
		if err != nil {
			return nil, err
		}
		clients[i] = &fasthttp.HostClient{Addr: u.Host, MaxConns: r.InFlight, ReadTimeout: lostAfter, MaxIdemponentCallAttempts: 1}
		defer clients[i].CloseIdleConnections()
	}
	return CallConcurrently(ctx, r.InFlight, r.For, func(n int) func() error {
		next, client, base := r.Vehicles.Turns(n, r.InFlight), clients[n%len(clients)], r.URLs[n%len(clients)]
		for range r.First {
			next()
		}
		request, response := newRequest(r.Method, r.Token), &fasthttp.Response{}
		return func() error {
			request.SetRequestURI(base + fmt.Sprintf(r.Path, next()))
			return send(client, request, response)
		}
	}), nil
}

func newRequest(method, token string) *fasthttp.Request {
	request := &fasthttp.Request{}
	request.Header.SetMethod(method)
	request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+token)
	return request
}

func send(client *fasthttp.HostClient, request *fasthttp.Request, response *fasthttp.Response) error {
	if err := client.Do(request, response); err != nil {
		return err
	}
	if response.StatusCode() != http.StatusOK {
		return fmt.Errorf("%d: %s", response.StatusCode(), response.Body())
	}
	return nil
}

// Waiters locks each vehicle once, on an HTTP connection each, all begun within Over, so that the
// commands wait together. The connections stay open until the last command is answered. Its result
// is Waited.
type Waiters struct {
	URL      string
	Token    string
	Vehicles int
	Over     time.Duration // from the first request to the last
}

// Waited is the result of Waiters. Times are microseconds since the epoch, by vehicle; zero: not
// answered.
type Waited struct {
	Answered  int     `json:"answered"`
	Refused   int     `json:"refused"`
	Why       string  `json:"why,omitempty"`       // of one that was refused
	Sending   float64 `json:"sending"`             // seconds from the first request to the last
	Peak      int     `json:"peak_in_flight"`      // requests without an answer
	Ended     []int64 `json:"ended,omitempty"`     // the answer was read
	Completed []int64 `json:"completed,omitempty"` // the command was, as the answer says
}

const (
	// waitTimeout is when Waiters stop waiting, after its last request.
	waitTimeout = telematics.MaxBudget + 30*time.Second
	// connectionsPerAddress is how many callers share a local address: the kernel's search for a
	// free port becomes slow where half of an address's ports are in use.
	connectionsPerAddress = 2000
)

// Do implements Job.
func (c *Waiters) Do(ctx context.Context, _ func(string)) (any, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	var connections atomic.Int64
	client := &fasthttp.HostClient{
		Addr: u.Host, MaxConns: c.Vehicles, ReadTimeout: c.Over + waitTimeout, MaxIdleConnDuration: c.Over + waitTimeout, MaxIdemponentCallAttempts: 1,
		Dial: func(address string) (net.Conn, error) {
			n := (connections.Add(1) - 1) / connectionsPerAddress
			dialer := net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n))}}
			return dialer.DialContext(ctx, "tcp", address)
		},
	}
	defer client.CloseIdleConnections()
	result := Waited{Ended: make([]int64, c.Vehicles), Completed: make([]int64, c.Vehicles)}
	responses, failures := make([]fasthttp.Response, c.Vehicles), make([]error, c.Vehicles)
	var inFlight atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for v := range c.Vehicles {
		time.Sleep(time.Until(begin.Add(c.Over * time.Duration(v) / time.Duration(c.Vehicles))))
		result.Peak = max(result.Peak, int(inFlight.Add(1)))
		all.Go(func() {
			request := newRequest(http.MethodPost, c.Token)
			request.Header.Set("Prefer", fmt.Sprintf("wait=%d", int(telematics.MaxBudget.Seconds())))
			request.SetRequestURI(c.URL + fmt.Sprintf(LockPath, v+1))
			failures[v] = send(client, request, &responses[v])
			result.Ended[v] = time.Now().UnixMicro()
			inFlight.Add(-1)
		})
	}
	result.Sending = time.Since(begin).Seconds()
	all.Wait()
	for v := range responses { // only now, because it takes CPU time
		err := failures[v]
		if err == nil {
			result.Completed[v], err = completedAt(responses[v].Body())
		}
		if err != nil {
			result.Ended[v] = 0
			result.Refused++
			result.Why = err.Error()
		}
	}
	result.Answered = c.Vehicles - result.Refused
	return result, nil
}

// completedAt returns when a command was completed, as its answer says.
func completedAt(body []byte) (int64, error) {
	var answer struct {
		Data struct {
			CompletedAt time.Time `json:"completed_at"`
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return 0, fmt.Errorf("read the answer: %w", err)
	}
	return answer.Data.CompletedAt.UnixMicro(), nil
}
