package money

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/lab/world"
)

// relay is the processor's way to the service. It delivers notices as a load balancer does: to one
// instance, or sometimes to all of them. During faults it drops some that are about payments: the
// service has to poll then.
type relay struct {
	drops atomic.Bool

	mu        sync.Mutex // guards what follows
	instances []*world.Instance
	backedOff map[*world.Instance]time.Time // until when nothing is sent there: it did not answer
}

const (
	dropPercent     = 30
	toAllPercent    = 15
	deliveryTries   = 40
	deliveryRetry   = 150 * time.Millisecond
	deliveryTimeout = time.Second
	backOffFor      = 2 * time.Second
)

func (r *relay) deliverTo(instances []*world.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instances = instances
}

// targets returns the instances that are not backed off, in random order.
func (r *relay) targets() []*world.Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	some := slices.DeleteFunc(slices.Clone(r.instances), func(n *world.Instance) bool { return time.Now().Before(r.backedOff[n]) })
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some
}

func (r *relay) backOff(n *world.Instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.backedOff[n] = time.Now().Add(backOffFor)
}

// RoundTrip accepts a notice when an instance has accepted it.
func (r *relay) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if !r.deliver(request, body) {
		status = http.StatusServiceUnavailable
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Request: request}, nil
}

func (r *relay) deliver(request *http.Request, body []byte) bool {
	if r.drops.Load() && aboutPayment(body) && rand.IntN(100) < dropPercent {
		return true
	}
	toAll := rand.IntN(100) < toAllPercent
	for range deliveryTries {
		accepted := 0
		for _, n := range r.targets() {
			if r.forward(request.Context(), n, request.Header, body) {
				accepted++
			}
			if accepted > 0 && !toAll {
				break
			}
		}
		if accepted > 0 {
			return true
		}
		world.Pause(request.Context(), deliveryRetry)
	}
	return false
}

func aboutPayment(body []byte) bool {
	var event struct{ Type string }
	return json.Unmarshal(body, &event) == nil && strings.HasPrefix(event.Type, "payment_intent.")
}

func (r *relay) forward(ctx context.Context, n *world.Instance, header http.Header, body []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.Public+"/webhooks/stripe", bytes.NewReader(body))
	if err != nil {
		return false
	}
	request.Header = header.Clone()
	response, err := world.Callers.Do(request)
	if err != nil {
		r.backOff(n)
		return false
	}
	defer response.Body.Close()
	return response.StatusCode/100 == 2
}
