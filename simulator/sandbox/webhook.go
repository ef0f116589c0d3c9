package sandbox

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// event is a notice that is sent.
type event struct {
	id   string
	name string
	body []byte
}

// apiVersion is that of the objects.
const apiVersion = "2026-03-25.dahlia"

// addEvent adds an event, with the object as it is at this moment.
func (l *ledger) addEvent(name string, v view) {
	e := event{id: newID("evt"), name: name}
	body, err := json.Marshal(view{
		"id": e.id, "object": "event", "type": name, "api_version": apiVersion, "created": time.Now().Unix(), "livemode": false,
		"pending_webhooks": 1, "request": view{"id": nil, "idempotency_key": nil}, "data": view{"object": v},
	})
	if err != nil {
		panic(fmt.Sprintf("sandbox: encode event: %v", err)) // views are maps of plain values
	}
	e.body = body
	l.events = append(l.events, e)
}

func (l *ledger) drainEvents() []event {
	events := l.events
	l.events = nil
	return events
}

// Sign returns the Stripe-Signature header of a body.
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.", at.Unix())
	mac.Write(body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// postman posts events, independently of each other, until they are accepted.
type postman struct {
	secret   string
	types    []string // empty: all
	disorder bool
	log      *slog.Logger
	client   *http.Client
	ctx      context.Context // ends with the sandbox, whose methods have none
	stop     context.CancelFunc
	slots    chan struct{} // bounds posts at a time
	work     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	url    string
	closed bool
}

const (
	maxConcurrentPosts = 8
	postBudget         = 10 * time.Second
	firstRetry         = 100 * time.Millisecond
	lastRetry          = 5 * time.Second
	maxDisorder        = 50 * time.Millisecond
)

func newPostman(cfg Config) *postman {
	ctx, stop := context.WithCancel(context.Background())
	if cfg.Poster == nil {
		cfg.Poster = &http.Transport{MaxIdleConnsPerHost: maxConcurrentPosts}
	}
	return &postman{
		secret: cfg.WebhookSecret, types: cfg.Events, disorder: cfg.Disorder, log: cfg.Logger, url: cfg.WebhookURL, ctx: ctx, stop: stop,
		client: &http.Client{Timeout: postBudget, Transport: cfg.Poster},
		slots:  make(chan struct{}, maxConcurrentPosts),
	}
}

func (p *postman) setURL(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.url = url
}

func (p *postman) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.url
}

// post returns immediately.
func (p *postman) post(events []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.url == "" {
		return
	}
	for _, e := range events {
		if len(p.types) > 0 && !slices.Contains(p.types, e.name) {
			continue
		}
		p.work.Go(func() { p.deliver(e) })
		if p.disorder && rand.IntN(3) == 0 {
			p.work.Go(func() { p.deliver(e) })
		}
	}
}

func (p *postman) deliver(e event) {
	if p.disorder {
		p.wait(rand.N(maxDisorder))
	}
	for retry := firstRetry; p.ctx.Err() == nil; retry = min(2*retry, lastRetry) {
		url := p.target()
		if url == "" {
			return
		}
		err := p.postOnce(url, e)
		if err == nil {
			return
		}
		p.log.DebugContext(p.ctx, "event was not taken", "event", e.id, "type", e.name, "err", err)
		p.wait(retry)
	}
}

func (p *postman) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

func (p *postman) postOnce(url string, e event) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
	request, err := http.NewRequestWithContext(p.ctx, http.MethodPost, url, bytes.NewReader(e.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Stripe-Signature", Sign(p.secret, time.Now(), e.body))
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("answered %d", response.StatusCode)
	}
	return nil
}

// close drops events that were not accepted.
func (p *postman) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
	p.client.CloseIdleConnections()
}
