package money

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/cmd/internal/service"
)

// relay brings what the processor tells to the service, as a load balancer would: to one instance, or, now and then, to all
// of them. While things are broken it loses some of what is about payments: the service must find out by itself then.
type relay struct {
	url     string
	figures *figures
	loses   atomic.Bool
	server  *http.Server
	served  chan struct{}

	mu        sync.Mutex // guards what follows
	instances []*instance
	shunned   map[*instance]time.Time // until when nothing is brought there: it did not answer
}

const (
	lostPercent     = 30
	toAllPercent    = 15
	deliveryTries   = 40
	deliveryRetry   = 150 * time.Millisecond
	deliveryTimeout = time.Second
	shunnedFor      = 2 * time.Second
)

func startRelay(w *world) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{url: "http://" + l.Addr().String(), figures: w.figures, served: make(chan struct{}), shunned: map[*instance]time.Time{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.served)
		if err := r.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			w.fall(err)
		}
	}()
	return r, nil
}

func (r *relay) deliverTo(instances []*instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instances = instances
}

// targets returns the instances that answer, as far as is known, in random order.
func (r *relay) targets() []*instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	some := slices.DeleteFunc(slices.Clone(r.instances), func(n *instance) bool { return time.Now().Before(r.shunned[n]) })
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some
}

func (r *relay) shun(n *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shunned[n] = time.Now().Add(shunnedFor)
}

func (r *relay) close() error {
	err := r.server.Close()
	<-r.served
	return err
}

// ServeHTTP takes a notice once some instance has taken it.
func (r *relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.loses.Load() && aboutPayment(body) && rand.IntN(100) < lostPercent {
		r.figures.add(notices, "lost on the way")
		return
	}
	toAll := rand.IntN(100) < toAllPercent
	for range deliveryTries {
		taken := 0
		for _, n := range r.targets() {
			if r.give(request.Context(), n, request.Header, body) {
				taken++
			}
			if taken > 0 && !toAll {
				break
			}
		}
		switch {
		case taken > 1:
			r.figures.add(notices, "taken by several instances")
			return
		case taken == 1:
			r.figures.add(notices, "taken by one instance")
			return
		}
		pause(request.Context(), deliveryRetry)
	}
	w.WriteHeader(http.StatusServiceUnavailable)
}

func aboutPayment(body []byte) bool {
	var event struct{ Type string }
	return json.Unmarshal(body, &event) == nil && strings.HasPrefix(event.Type, "payment_intent.")
}

func (r *relay) give(ctx context.Context, n *instance, header http.Header, body []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.Public+"/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", header.Get("Content-Type"))
	request.Header.Set("Stripe-Signature", header.Get("Stripe-Signature"))
	response, err := service.Direct.Do(request)
	if err != nil {
		r.shun(n)
		return false
	}
	defer response.Body.Close()
	return response.StatusCode/100 == 2
}
