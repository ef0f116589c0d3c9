package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
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

func (c call) Run(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Connections, DisableCompression: true}}
	defer client.CloseIdleConnections()
	result := inParallel(ctx, c.Connections, c.For, func(int) func() error {
		return func() error { return c.one(client) }
	})
	return json.NewEncoder(os.Stdout).Encode(result)
}

// one reads one status, whole.
func (c call) one(client *http.Client) error {
	request, err := http.NewRequest(http.MethodGet, statusURL(c.URL, rand.IntN(c.Vehicles)+1), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err = io.Copy(io.Discard, response.Body); err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return err
}

func statusURL(base string, vehicle int) string {
	return fmt.Sprintf("%s/api/v1/admin/vehicles/%d/status", base, vehicle)
}
