package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"motorpool/telematics/signing"
)

// ConnectedUnits are units with an MQTT connection each, as real ones have: with an account, a last
// will, retained presence and pings. Each verifies its commands and executes each once, and reports
// when that is requested: see RequestReports. The job is ready when all are connected, and runs
// until Finish. Its result is UnitCounts.
type ConnectedUnits struct {
	URL      string // of the MQTT broker's listener for units
	Secret   string // from which mosquitto.UnitPassword derives their passwords
	Keyring  string // file of the public keys
	Vehicles Vehicles
	// The units are those of every nth vehicle, from the first one on: the others are connected to
	// other MQTT brokers.
	First, Every int

	keys    signing.Keyring
	session string
	mu      sync.Mutex
	units   []*connectedUnit
	acked   atomic.Int64 // reports
	lost    atomic.Int64 // connections
	running sync.WaitGroup
}

// UnitCounts are what units have done.
type UnitCounts struct {
	Connected int   `json:"connected"`
	Lost      int64 `json:"lost_connections"`
	Executed  int64 `json:"executed"`
	Repeated  int64 `json:"repeated"` // commands received again, and not executed again
	Refused   int64 `json:"refused"`
}

// ReportsSent is the result of RequestReports.
type ReportsSent struct {
	Begin    time.Time `json:"begin"` // of the first report
	End      time.Time `json:"end"`   // when the last one was acknowledged
	Messages int64     `json:"messages"`
	Units    int       `json:"units"` // that have reported
	// From then on, each of those units reported at least once.
	Latest time.Time `json:"latest"`
}

// reportsWanted is the body of a request for reports.
type reportsWanted struct {
	Rate float64 // a second
	For  time.Duration
}

const (
	connectingAtATime = 64
	connectAttempts   = 5
	// Pings are sent well before the keep-alive is over, whatever else is sent.
	keepAlive    = time.Minute
	pingInterval = 40 * time.Second
	pingTick     = 100 * time.Millisecond
)

// Paths of the job's HTTP server.
const (
	reportsPath = "/reports"
	countsPath  = "/counts"
)

// Do implements Job.
func (c *ConnectedUnits) Do(ctx context.Context, ready func(string)) (any, error) {
	text, err := os.ReadFile(c.Keyring)
	if err != nil {
		return nil, err
	}
	if c.keys, err = signing.ParseKeyring(text); err != nil {
		return nil, err
	}
	c.session = uuid.NewString()
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for _, u := range c.all() {
			_ = u.conn.Close()
		}
		c.running.Wait()
	}()
	c.running.Go(func() { c.ping(ctx) })
	if err := c.connectAll(ctx); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+countsPath, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(c.counts()) })
	mux.HandleFunc("POST "+reportsPath, c.serveReports)
	if err := ServeHTTP(ctx, mux, ready); err != nil {
		return nil, err
	}
	return c.counts(), nil
}

func (c *ConnectedUnits) all() []*connectedUnit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.units
}

func (c *ConnectedUnits) counts() UnitCounts {
	units := c.all()
	counts := UnitCounts{Connected: len(units) - int(c.lost.Load()), Lost: c.lost.Load()}
	for _, u := range units {
		u.mu.Lock()
		counts.Executed += u.executed
		counts.Repeated += u.repeated
		counts.Refused += u.refused
		u.mu.Unlock()
	}
	return counts
}

// connectAll connects the units, some of them at a time.
func (c *ConnectedUnits) connectAll(ctx context.Context) error {
	all, connecting := errgroup.WithContext(ctx)
	all.SetLimit(connectingAtATime)
	for n := c.First; n < c.Vehicles.Count && connecting.Err() == nil; n += c.Every {
		all.Go(func() error {
			u, err := c.connect(connecting, n)
			if err != nil {
				return fmt.Errorf("connect unit %d of %d: %w", n+1, c.Vehicles.Count, err)
			}
			c.mu.Lock()
			c.units = append(c.units, u)
			c.mu.Unlock()
			c.running.Go(func() { c.listen(ctx, u) }) // for longer than all connect
			return nil
		})
	}
	return errors.Join(all.Wait(), ctx.Err())
}

// connect connects the unit of the nth vehicle, and retries if the MQTT broker does not accept it,
// as when too many connect concurrently.
func (c *ConnectedUnits) connect(ctx context.Context, n int) (u *connectedUnit, err error) {
	for range connectAttempts {
		if u, err = c.dial(ctx, n); err == nil {
			return u, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		}
	}
	return nil, err
}

// ping sends a ping for each connected unit in turn, already while others connect.
func (c *ConnectedUnits) ping(ctx context.Context) {
	tick := time.NewTicker(pingTick)
	defer tick.Stop()
	next, due := 0, 0.0
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		units := c.all()
		for due += float64(len(units)) * pingTick.Seconds() / pingInterval.Seconds(); due >= 1; due-- {
			next = (next + 1) % len(units)
			_ = units[next].write([]byte{0xc0, 0}) // PINGREQ; listen notices a loss
		}
	}
}

func (c *ConnectedUnits) serveReports(w http.ResponseWriter, r *http.Request) {
	var wanted reportsWanted
	if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sent, err := c.report(r.Context(), wanted)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(sent)
}

// report makes the units report in turn, in an order unrelated to that of the vehicles, and waits
// until all reports are acknowledged.
func (c *ConnectedUnits) report(ctx context.Context, wanted reportsWanted) (ReportsSent, error) {
	units := c.all()
	if len(units) == 0 {
		return ReportsSent{}, errors.New("no unit is connected")
	}
	order := rand.Perm(len(units))
	before := c.acked.Load()
	sent := ReportsSent{Begin: time.Now()}
	tick := time.NewTicker(rateTick)
	defer tick.Stop()
	for time.Since(sent.Begin) < wanted.For && ctx.Err() == nil {
		now := time.Now().UTC().Format(reportTime)
		for due := int64(wanted.Rate * time.Since(sent.Begin).Seconds()); sent.Messages < due; sent.Messages++ {
			if err := units[order[int(sent.Messages)%len(units)]].report(now); err != nil {
				return sent, fmt.Errorf("report: %w", err)
			}
		}
		<-tick.C
	}
	sent.Units = min(int(sent.Messages), len(units))
	sent.Latest = time.Now().Add(-time.Duration(float64(sent.Units) / wanted.Rate * float64(time.Second)))
	for giveUp := time.Now().Add(acksTimeout); c.acked.Load()-before < sent.Messages; <-tick.C {
		if time.Now().After(giveUp) || ctx.Err() != nil {
			return sent, fmt.Errorf("%d of %d reports acknowledged", c.acked.Load()-before, sent.Messages)
		}
	}
	sent.End = time.Now()
	return sent, nil
}

// RequestReports makes connected units report for d, and waits until all reports are acknowledged.
// address is that of their job.
func RequestReports(ctx context.Context, address string, rate float64, d time.Duration) (sent ReportsSent, err error) {
	body, err := json.Marshal(reportsWanted{rate, d})
	if err != nil {
		return sent, err
	}
	return sent, call(ctx, http.MethodPost, address+reportsPath, string(body), &sent)
}

// ReadUnitCounts reads what connected units have done so far.
func ReadUnitCounts(ctx context.Context, address string) (counts UnitCounts, err error) {
	return counts, call(ctx, http.MethodGet, address+countsPath, "", &counts)
}

func call(ctx context.Context, method, url, body string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		why := make([]byte, 1000)
		n, _ := response.Body.Read(why)
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, why[:n])
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
