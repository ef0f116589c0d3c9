package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Hundreds of orders wait concurrently (the benchmark waiting has 20,000), and all get the same
// answer, as do the next requests on their connections.
func TestServer_ManyWaitingOrdersGetTheSameAnswers(t *testing.T) {
	const waiting = 200
	a := newAPI(t)
	all, vehicles := make(chan struct{}), make(chan struct{})
	var ordered sync.WaitGroup
	ordered.Add(waiting)
	a.controller.send = func(ctx context.Context, o delivery.Order) (telematics.Command, error) {
		ordered.Done()
		<-vehicles
		assert.NoError(t, ctx.Err(), "the context has ended")
		return settled(o, telematics.Succeeded), nil
	}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := serve(t, a.handler, listener)
	token := adminToken()
	answers, next := make([]string, waiting), make([]string, waiting)
	var callers sync.WaitGroup
	for i := range waiting {
		callers.Go(func() {
			c, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Error(err)
				ordered.Done()
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			read := bufio.NewReader(c)
			id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			ask := func(method, path string) string {
				if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nPrefer: "+
					"wait=30\r\nX-Request-ID: %s\r\nContent-Length: 0\r\n\r\n",
					method, path, token, id); err != nil {
					return err.Error()
				}
				r, err := http.ReadResponse(read, nil)
				if err != nil {
					return err.Error()
				}
				defer r.Body.Close()
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return err.Error()
				}
				r.Header.Del("Date")
				return strings.ReplaceAll(fmt.Sprint(r.Status, r.Close, r.Header, string(body)), id, "its id")
			}
			answers[i] = ask(http.MethodPost, lock)
			next[i] = ask(http.MethodPost, "/api/v1/admin/vehicles/none/control/lock")
		})
	}
	go func() { ordered.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Fatal("not all orders reached the controller")
	}
	close(vehicles)
	callers.Wait()
	for _, of := range [][]string{answers, next} {
		for i, answer := range of {
			if answer != of[0] {
				t.Fatalf("caller %d: %s\nthe first: %s", i, answer, of[0])
			}
		}
	}
	if !strings.HasPrefix(answers[0], "200 OKfalse") || !strings.Contains(answers[0], "Preference-Applied") ||
		!strings.HasPrefix(next[0], "422 ") {
		t.Errorf("%s\n%s", answers[0], next[0])
	}
	same(t, a.controller.count(), waiting, "orders")
	ending, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	assert.NoError(t, server.Shutdown(ending), "Shutdown")
}
