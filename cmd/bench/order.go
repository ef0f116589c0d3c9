package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/valyala/fasthttp"
)

// order is the process that has vehicles locked, so many at a time, each over a connection of its own that is kept alive. It
// prints what came of it. Its client is a frugal one: what it takes is missing to what is measured.
type order struct {
	part
	URL      []string
	Token    string
	InFlight int
	For      time.Duration
}

func (o order) Run(ctx context.Context) error {
	clients := make([]*fasthttp.HostClient, len(o.URL))
	for i, at := range o.URL {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		clients[i] = &fasthttp.HostClient{
			Addr: u.Host, MaxConns: o.InFlight, ReadTimeout: lostAfter, MaxIdemponentCallAttempts: 1, DisablePathNormalizing: true,
		}
		defer clients[i].CloseIdleConnections()
	}
	result := inParallel(ctx, o.InFlight, o.For, func(n int) func() error {
		turn := newTurn(n, o.InFlight, o.Vehicles)
		client, base := clients[n%len(clients)], o.URL[n%len(clients)]
		request, response := &fasthttp.Request{}, &fasthttp.Response{}
		request.Header.SetMethod(fasthttp.MethodPost)
		request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+o.Token)
		return func() error {
			request.SetRequestURI(lockURL(base, o.id(turn.next()-1)))
			if err := client.Do(request, response); err != nil {
				return err
			}
			if response.StatusCode() != fasthttp.StatusOK {
				return fmt.Errorf("%d: %s", response.StatusCode(), response.Body())
			}
			return nil
		}
	})
	return json.NewEncoder(os.Stdout).Encode(result)
}

func lockURL(base string, vehicle int) string {
	return fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/lock", base, vehicle)
}
