// Package alertmanager sends open alerts to Prometheus Alertmanagers, which group and silence them,
// and notify people by mail, chat and pager.
//
// Each instance sends all open alerts: the Alertmanager knows an alert by its labels, so that the
// same one from two instances is one. A request is repeated each Config.Repeat. What no instance
// sends any more ends by itself after three of these intervals; what was cleared ends immediately.
package alertmanager

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/alerts"
	"motorpool/guard"
	"motorpool/telematics"
)

// Config configures a Sender. URLs and Open are required.
type Config struct {
	URLs []*url.URL // of the Alertmanagers, each of which gets all alerts; see ParseURLs
	// Open returns all open alerts. While it fails, those that it returned before are sent.
	Open func(context.Context) ([]alerts.Alert, error)
	// Console is the URL of the console, for links. Defaults to no links.
	Console string
	// Look is the interval of reads of open alerts; what is new is sent then. Defaults to 5 s.
	Look time.Duration
	// Repeat is the interval of repetitions. Defaults to 1 min.
	Repeat time.Duration
	// Timeout bounds a request. Defaults to 5 s.
	Timeout time.Duration
	Logger  *slog.Logger          // Defaults to slog.Default().
	Metrics prometheus.Registerer // Defaults to none.
	Guard   *guard.Guard          // recovers panics; nil: they are only logged
	Now     func() time.Time      // Defaults to time.Now.
}

// ParseURLs returns the URLs in a list that is separated by commas. Its error does not quote the
// list, which may contain passwords.
func ParseURLs(list string) ([]*url.URL, error) {
	var urls []*url.URL
	for text := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("want http:// or https://host:port, without a query; several separated by commas")
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// Sender sends alerts. Run is its only goroutine.
type Sender struct {
	Config
	http    *http.Client
	targets []*target
	open    map[string]postable // by labels; as they were last read
	unread  guard.Outage
	sent    *prometheus.CounterVec
}

// target is an Alertmanager, and what it was sent.
type target struct {
	api    string
	host   string
	sent   map[string]sentAlert // by labels
	outage guard.Outage
}

type sentAlert struct {
	postable
	at time.Time
}

// postable is an alert in the words of the API v2.
type postable struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

const (
	// batch is how many alerts a request has. Half: twice the requests while many are open; double:
	// bodies of a megabyte, which proxies refuse.
	batch = 500
	// lifetime is in how many intervals an alert ends that is not sent any more. Two: one lost
	// request is shown as the end of an alert. Double: it stays for longer where no instance is
	// running.
	lifetime = 3
)

// New assembles a sender. It does no I/O.
func New(c Config) *Sender {
	c.Look, c.Repeat = cmp.Or(c.Look, 5*time.Second), cmp.Or(c.Repeat, time.Minute)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Sender{Config: c, http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(), Timeout: cmp.Or(c.Timeout, 5*time.Second),
		// Alerts are sent to the configured servers only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, u := range c.URLs {
		s.targets = append(s.targets, &target{
			api: u.JoinPath("api/v2/alerts").String(), host: u.Host, sent: map[string]sentAlert{},
		})
	}
	s.sent = promauto.With(c.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "motorpool_alertmanager_requests_total", Help: "Requests to Alertmanagers, by their result: ok or failed.",
	}, []string{"result"})
	for _, result := range []string{"ok", "failed"} {
		s.sent.WithLabelValues(result)
	}
	return s
}

// Run sends alerts until the context ends, then what has changed since, and returns nil. Failures
// are logged once and counted; what was not sent is sent with the next read.
func (s *Sender) Run(ctx context.Context) error {
	defer s.http.CloseIdleConnections()
	for tick := time.NewTicker(s.Look); ; {
		s.look(ctx)
		select {
		case <-ctx.Done():
			tick.Stop()
			s.look(context.WithoutCancel(ctx))
			return nil
		case <-tick.C:
		}
	}
}

// look reads the open alerts, and sends each Alertmanager what it lacks.
func (s *Sender) look(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, s.http.Timeout)
	defer cancel()
	open, err := s.Open(reading)
	if ctx.Err() != nil {
		return
	}
	if s.unread.Note(ctx, s.Logger, "open alerts not read, the last ones stay at the alertmanager", err); err == nil {
		s.open = map[string]postable{}
		for _, a := range open {
			p := s.postable(a)
			s.open[key(p.Labels)] = p
		}
	}
	if s.open == nil {
		return // it was never read
	}
	var all sync.WaitGroup
	for _, t := range s.targets {
		all.Go(func() {
			err := s.Guard.Try("send alerts", func() error { return s.update(ctx, t) })
			t.outage.Note(ctx, s.Logger.With("alertmanager", t.host), "alertmanager unavailable, alerts are not sent", err)
		})
	}
	all.Wait()
}

// update sends what an Alertmanager lacks: alerts that it was not sent, or not for Config.Repeat,
// and the end of those that are not open any more.
func (s *Sender) update(ctx context.Context, t *target) error {
	now := s.Now()
	due := map[string]postable{}
	for k, p := range s.open {
		if was, ok := t.sent[k]; !ok || now.Sub(was.at) >= s.Repeat {
			p.EndsAt = now.Add(lifetime * s.Repeat)
			due[k] = p
		}
	}
	for k, was := range t.sent {
		if _, open := s.open[k]; !open {
			was.EndsAt = now
			due[k] = was.postable
		}
	}
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(due)), batch) {
		list := make([]postable, len(keys))
		for i, k := range keys {
			list[i] = due[k]
		}
		err := s.post(ctx, t.api, list)
		if err != nil {
			s.sent.WithLabelValues("failed").Inc()
			return err
		}
		s.sent.WithLabelValues("ok").Inc()
		for _, k := range keys {
			if _, open := s.open[k]; open {
				t.sent[k] = sentAlert{due[k], now}
			} else {
				delete(t.sent, k)
			}
		}
	}
	return nil
}

// post fails unless the Alertmanager has accepted all alerts.
func (s *Sender) post(ctx context.Context, api string, list []postable) error {
	body, err := json.Marshal(list)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, api, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		return withoutURL(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 500)) // an error's reason
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s: %q", response.Status, said)
	}
	return err
}

// withoutURL returns the cause of an error of http.Client: its text has the URL, which may contain
// a password.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// postable returns an alert with the labels by which the Alertmanager knows it. They stay the same
// while nothing but its facts changes: with a higher severity it is another alert there, and the
// first one ends.
func (s *Sender) postable(a alerts.Alert) postable {
	p := postable{
		Labels: map[string]string{
			"alertname": string(a.Rule), "severity": string(a.Severity), "service": "motorpool",
		},
		Annotations: map[string]string{"summary": alerts.Words(a), "since": telematics.FormatTime(a.Since)},
		StartsAt:    a.Opened, GeneratorURL: s.link(a),
	}
	if a.Agency != 0 {
		p.Labels["agency"] = strconv.FormatInt(int64(a.Agency), 10)
	}
	if a.Vehicle != 0 {
		p.Labels["vehicle"], p.Labels["plate"] = strconv.FormatInt(int64(a.Vehicle), 10), a.Plate
	}
	if a.Booking != 0 {
		p.Labels["booking"] = strconv.FormatInt(a.Booking, 10)
	}
	if a.Person != "" {
		p.Labels["person"] = a.Person
	}
	if p.GeneratorURL != "" {
		p.Annotations["console"] = p.GeneratorURL
	}
	if a.Seen != nil {
		p.Annotations["acknowledged_by"] = a.Seen.By
	}
	return p
}

// link returns the page of the console that an alert leads to.
func (s *Sender) link(a alerts.Alert) string {
	page := strings.TrimSuffix(s.Console, "/") + "/console/#"
	switch {
	case s.Console == "":
		return ""
	case a.Vehicle == 0:
		return page + "/activity?actor=" + url.QueryEscape(a.Person)
	}
	return fmt.Sprintf("%s/vehicles/%d", page, a.Vehicle)
}

// key returns labels as text, in one order.
func key(labels map[string]string) string {
	text, _ := json.Marshal(labels) // sorts them; strings can be encoded
	return string(text)
}
