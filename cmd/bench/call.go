package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"time"
)

// call is the process that reads the status of vehicles, at random. It prints what came of it.
type call struct {
	URL         string
	Token       string
	Vehicles    int
	Connections int
	For         time.Duration
}

// called is what came of it.
type called struct {
	Answered int64   `json:"answered"` // with 200
	Refused  int64   `json:"refused"`
	Rate     float64 `json:"per_second"`
	quantiles
}

func (c call) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.For)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Connections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex // guards what follows
	var sum called
	all := newLatencies()
	var callers sync.WaitGroup
	begin := time.Now()
	for range c.Connections {
		callers.Go(func() {
			own, answered, refused := newLatencies(), int64(0), int64(0)
			for ctx.Err() == nil {
				sent := time.Now()
				status, err := c.one(client)
				if err != nil || status != http.StatusOK {
					refused++
					continue
				}
				own.add(time.Since(sent))
				answered++
			}
			mu.Lock()
			defer mu.Unlock()
			all.h.Merge(own.h)
			sum.Answered += answered
			sum.Refused += refused
		})
	}
	callers.Wait()
	sum.Rate = float64(sum.Answered) / time.Since(begin).Seconds()
	sum.quantiles = all.quantiles()
	return json.NewEncoder(os.Stdout).Encode(sum)
}

// one is not cut off by the end of the load: it is counted, and leaves a line in the history.
func (c call) one(client *http.Client) (status int, err error) {
	request, err := http.NewRequest(http.MethodGet, statusURL(c.URL, rand.IntN(c.Vehicles)+1), nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func statusURL(base string, vehicle int) string {
	return fmt.Sprintf("%s/api/v1/admin/vehicles/%d/status", base, vehicle)
}
