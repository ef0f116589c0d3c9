package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// percentile returns one of the latencies, which it sorts, in milliseconds.
func percentile(all []time.Duration, q int) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[(len(all)-1)*q/100].Microseconds()) / 1000
}

// Calls are calls of several workers, each of which makes one at a time. None is interrupted.
type Calls struct {
	Workers int
	Over    time.Duration // within which the workers begin
	For     time.Duration // after which no call begins; 0: each worker makes one
}

// Called is the result of calls.
type Called struct {
	Answered int64   `json:"answered"`
	Refused  int64   `json:"refused"`
	Why      string  `json:"why,omitempty"` // of one that was refused
	Rate     float64 `json:"per_second"`    // answered
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	// Settled is from when the command was completed, as its answer says, to the answer. It is
	// measured where each worker makes one call.
	Settled float64 `json:"settled_p99_ms"`
}

// Do makes the calls, and returns when all have ended.
func (c Calls) Do(ctx context.Context, worker func(n int) (call func() error)) (sum Called) {
	var mu sync.Mutex // guards sum and all
	var all []time.Duration
	var running sync.WaitGroup
	begin := time.Now()
	for n := range c.Workers {
		time.Sleep(time.Until(begin.Add(c.Over * time.Duration(n) / time.Duration(c.Workers))))
		call := worker(n)
		running.Go(func() {
			for first := true; first || time.Since(begin) < c.For && ctx.Err() == nil; first = false {
				sent := time.Now()
				err := call()
				took := time.Since(sent)
				mu.Lock()
				if err != nil {
					sum.Refused++
					sum.Why = err.Error()
				} else {
					sum.Answered++
					all = append(all, took)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	sum.Rate, sum.P50, sum.P99 = float64(sum.Answered)/time.Since(begin).Seconds(), percentile(all, 50), percentile(all, 99)
	return sum
}

// LockPath is the path of a command, for a vehicle's id.
const LockPath = "/api/v1/admin/vehicles/%d/control/lock"

// Requests locks vehicles in turn, each worker over an HTTP connection. Its result is Called. Its
// client is fasthttp's, because the CPU time of the client is missing from what is measured.
type Requests struct {
	Calls
	URL      string
	Token    string
	Vehicles Vehicles
	First    int           // turn of the vehicles: those of turns before were in other loads
	Wait     time.Duration // for the vehicle; 0: as long as the service does by default
}

// Do implements Job.
func (r *Requests) Do(ctx context.Context, _ func(string)) (any, error) {
	target, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	client := &fasthttp.HostClient{
		Addr: target.Host, MaxConns: r.Workers, MaxIdleConnDuration: time.Hour, MaxIdemponentCallAttempts: 1,
		ReadTimeout: r.Wait + 15*time.Second, // an answer that takes longer is lost
		Dial: func(address string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: dialTimeout, LocalAddr: someAddress()}
			return dialer.DialContext(ctx, "tcp", address)
		},
	}
	defer client.CloseIdleConnections()
	responses, ended := make([]fasthttp.Response, r.Workers), make([]time.Time, r.Workers)
	called := r.Calls.Do(ctx, func(n int) func() error {
		next := r.Vehicles.Turns(n, r.Workers)
		for range r.First {
			next()
		}
		var request fasthttp.Request
		request.Header.SetMethod(http.MethodPost)
		request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+r.Token)
		if r.Wait > 0 {
			request.Header.Set("Prefer", fmt.Sprintf("wait=%d", int(r.Wait.Seconds())))
		}
		return func() error {
			request.SetRequestURI(r.URL + fmt.Sprintf(LockPath, next()))
			if err := client.Do(&request, &responses[n]); err != nil {
				return err
			}
			if responses[n].StatusCode() != http.StatusOK {
				return fmt.Errorf("%d: %s", responses[n].StatusCode(), responses[n].Body())
			}
			ended[n] = time.Now()
			return nil
		}
	})
	if r.For > 0 {
		return called, nil
	}
	var settled []time.Duration
	for n := range responses { // only now, because it takes CPU time
		var answer struct {
			Data struct {
				CompletedAt time.Time `json:"completed_at"`
			}
		}
		if ended[n].IsZero() {
			continue
		}
		if err := json.Unmarshal(responses[n].Body(), &answer); err != nil {
			return nil, fmt.Errorf("read an answer: %w", err)
		}
		settled = append(settled, ended[n].Sub(answer.Data.CompletedAt))
	}
	called.Settled = percentile(settled, 99)
	return called, nil
}
