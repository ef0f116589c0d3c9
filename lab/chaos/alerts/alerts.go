// Package alerts checks the shipped alert rules in a round with one fault: a real Prometheus
// scrapes the instances and evaluates the rules, and each alert that is its fault's fires in time,
// and no other does.
package alerts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promql "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"motorpool/cmd/dev/folder"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/prometheus"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
)

const (
	// Factor divides the durations of rules and configuration: a fault of 20 s is one of 200 s for
	// the rules. The durations in the service stay, so it is not larger than needed.
	Factor = 10
	// inTime is how long after its fault an alert may begin to fire: 100 s for the rules.
	inTime = 10 * time.Second
	// disturbed is how long after a stall of the machine an alert may have it as its reason.
	disturbed = 15 * time.Second
)

// Watch is a Prometheus that watches instances.
type Watch struct{ url string }

// Start starts a Prometheus with the shipped rules, which ends with the world.
func Start(w *world.World) (*Watch, error) {
	var targets []string
	for _, n := range w.Running {
		targets = append(targets, strings.TrimPrefix(n.Internal, "http://"))
	}
	file, err := prometheus.WriteFiles(w.Dir, Factor, targets...)
	if err != nil {
		return nil, err
	}
	server, err := devstack.StartPrometheus(w.Dir, file)
	if err != nil {
		return nil, err
	}
	w.OnClose(server.Close)
	return &Watch{server.URL()}, nil
}

// Fired returns when each alert that has fired began to.
func (w *Watch) Fired(ctx context.Context) (map[string]time.Time, error) {
	client, err := api.NewClient(api.Config{Address: w.url, Client: folder.Probe})
	if err != nil {
		return nil, err
	}
	value, _, _, err := promql.NewAPI(client).Query(ctx, `ALERTS{alertstate="firing"}[1h]`, time.Now())
	if err != nil {
		return nil, fmt.Errorf("read alerts: %w", err)
	}
	fired := map[string]time.Time{}
	for _, series := range value.(model.Matrix) { // of a range
		name, at := string(series.Metric["alertname"]), series.Values[0].Timestamp.Time()
		if first, known := fired[name]; !known || at.Before(first) {
			fired[name] = at
		}
	}
	return fired, nil
}

// Of are the shipped alerts of a fault, separated by spaces: those that must fire in a round with
// this fault alone, and those that may, as its consequences.
type Of struct{ Must, May string }

// Always may fire in any round: some cars are silent or slow, and some callers have no patience, so
// that about one command in twenty is unknown at rest.
const Always = "MotorpoolCommandsUnknown"

// Failing are alerts about commands, which have any reason.
const Failing = " MotorpoolCommandsUnavailable MotorpoolCommandsFailing MotorpoolMessagesDropped"

// Law is the law about alerts.
const Law = "alerts fire in their fault"

// Round is what a round with one fault shows of alerts.
type Round struct {
	Fault    string // the name of its kind
	Of       Of
	From, To time.Time
	Fired    map[string]time.Time
	// Stalled reports whether the machine stalled in an interval: nothing is judged then.
	Stalled func(from, to time.Time) bool
}

// Check checks that each alert that the fault must fire has fired, while it lasted or soon after
// it, and that no other has than those that may be its consequences.
func Check(report *verdict.Report, r Round) {
	report.AddLaw(Law, 1) // that no other fires
	must, may := strings.Fields(r.Of.Must), strings.Fields(r.Of.May)
	for _, name := range must {
		at, fired := r.Fired[name]
		if fired || !r.Stalled(r.From, r.To) {
			report.Must(Law, fired, "%s did not fire in a round with %q", name, r.Fault)
		}
		if fired && !r.Stalled(r.From, at) {
			report.Must(Law, r.during(at), "%s", r.when(name))
		}
	}
	for name, at := range r.Fired {
		if name == Always || slices.Contains(must, name) || r.Stalled(at.Add(-disturbed), at) {
			continue
		}
		report.Must(Law, slices.Contains(may, name), "%s is no alert of %q: %s", name, r.Fault, r.when(name))
		report.Must(Law, r.during(at), "%s", r.when(name))
	}
}

func (r Round) during(at time.Time) bool { return at.After(r.From) && at.Before(r.To.Add(inTime)) }

func (r Round) when(name string) string {
	at := r.Fired[name]
	if at.Before(r.From) {
		return fmt.Sprintf("%s fired %v before the fault", name, r.From.Sub(at).Round(time.Second/10))
	}
	return fmt.Sprintf(
		"%s fired %v after the fault began, which lasted %v", name, at.Sub(r.From).Round(time.Second/10),
		r.To.Sub(r.From).Round(time.Second/10),
	)
}
