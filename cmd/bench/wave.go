package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"motorpool/telematics"
)

// wave is the process that has every vehicle locked once, each over a connection of its own, all within a moment: so they wait
// together. The connections stay open until the last order is answered, like those of callers that have more to say. It prints when each
// order was sent and answered.
type wave struct {
	URL      string
	Token    string
	Vehicles int
	Over     time.Duration `help:"From the first order to the last."`
}

// waved is what came of a wave: of each vehicle a line, in the order of the vehicles. Times are microseconds since the epoch,
// zero where there is none.
type waved struct {
	Sent    []int64 `json:"sent"`
	Ended   []int64 `json:"ended"`   // an answer was read, or none came
	Heard   []int64 `json:"heard"`   // the whole answer was read, of a vehicle that was locked
	Out     []int64 `json:"out"`     // first published, as the answer says; milliseconds are the finest it tells
	Settled []int64 `json:"settled"` // completed, as the answer says; likewise
	Refused int     `json:"refused"`
	Why     string  `json:"why,omitempty"` // of one that was refused
}

func newWaved(vehicles int) waved {
	each := func() []int64 { return make([]int64, vehicles) }
	return waved{Sent: each(), Ended: each(), Heard: each(), Out: each(), Settled: each()}
}

// waveLost is when an answer is given up, after the last order was due.
const waveLost = telematics.MaxBudget + 30*time.Second

func (w wave) Run(ctx context.Context) error {
	u, err := url.Parse(w.URL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, w.Over+waveLost)
	defer cancel()         // closes the connections
	debug.SetGCPercent(-1) // it lives for one wave, and what its collector takes is missing to what is measured
	result := newWaved(w.Vehicles)
	bodies, failures := make([][]byte, w.Vehicles), make([]error, w.Vehicles)
	var orders sync.WaitGroup
	begin := time.Now()
	for v := range w.Vehicles {
		time.Sleep(time.Until(begin.Add(w.Over * time.Duration(v) / time.Duration(w.Vehicles))))
		orders.Go(func() {
			bodies[v], failures[v] = w.order(ctx, u.Host, v+1, &result.Sent[v])
			result.Ended[v] = time.Now().UnixMicro()
		})
	}
	orders.Wait()
	// Only now: whoever reads what an answer says is late for the next one.
	for v, body := range bodies {
		err := failures[v]
		if err == nil {
			err = result.read(v, body)
		}
		if err != nil {
			result.Refused++
			result.Why = err.Error()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// callersOfAddress is how many callers share an address, each with a port of its own. Linux looks for one that is free among half of all first, which are
// 14,000, and where those are in use it looks at each of them, for every connection: that took more than a processor's time.
const callersOfAddress = 2000

// order returns the answer, and leaves the connection open until the context ends.
func (w wave) order(ctx context.Context, host string, vehicle int, sent *int64) ([]byte, error) {
	from := net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+(vehicle-1)/callersOfAddress))}
	conn, err := (&net.Dialer{LocalAddr: &from}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // it has nothing more to say
	*sent = time.Now().UnixMicro()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nPrefer: wait=%d\r\nContent-Length: 0\r\n\r\n",
		lockURL("", vehicle), host, w.Token, int(telematics.MaxBudget.Seconds())); err != nil {
		return nil, err
	}
	var response fasthttp.Response
	if err := response.Read(bufio.NewReaderSize(conn, 2<<10)); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if response.StatusCode() != fasthttp.StatusOK {
		return nil, fmt.Errorf("%d: %s", response.StatusCode(), response.Body())
	}
	return response.Body(), nil
}

// read takes from an answer what it says of its command.
func (r *waved) read(v int, body []byte) error {
	var said struct {
		Data struct {
			SentAt      time.Time `json:"sent_at"`
			CompletedAt time.Time `json:"completed_at"`
		}
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	r.Heard[v], r.Out[v], r.Settled[v] = r.Ended[v], said.Data.SentAt.UnixMicro(), said.Data.CompletedAt.UnixMicro()
	return nil
}

// answered is how many orders were.
func (r *waved) answered() int { return len(r.Sent) - r.Refused }
