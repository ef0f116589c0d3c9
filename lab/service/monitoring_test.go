package service_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

const deployed = "../../deploy/"

// A real Prometheus with the files of deploy/ scrapes two instances with a simulated car. Each
// query of the dashboard has data, no alert fires except for a certificate that expires soon, and
// when the MQTT broker ends, Alertmanager receives the alert.
func TestMonitoring_DashboardHasDataAndAnAlertReachesAlertmanager(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.PrometheusServer)
	devstack.NeedServer(t, devstack.AlertmanagerServer)
	s := realStack(t, 1)
	alertmanager, err := devstack.StartAlertmanager(s.dir, deployed+"prometheus/alertmanager.yml")
	s.must(err)
	t.Cleanup(func() { s.must(alertmanager.Close()) })
	authority, err := devstack.NewAuthority(filepath.Join(s.dir, "authority"))
	s.must(err)
	pair, err := authority.Issue("public")
	s.must(err)
	i := s.serve(func(c *app.Config) { c.AlertmanagerURL = app.Secret(alertmanager.URL()) })
	secured := s.serve(func(c *app.Config) { c.HTTPCert, c.HTTPKey = pair.CertFile, pair.KeyFile })
	s.drive(nil, healthy)
	s.eventually(30*time.Second, "locked", func() bool { return i.control(1, telematics.Lock).status == http.StatusOK })

	prometheus, err := devstack.StartPrometheus(s.dir, s.prometheusConfig(alertmanager.Addr, i, secured))
	s.must(err)
	t.Cleanup(func() { s.must(prometheus.Close()) })

	queries := dashboardQueries(t)
	if len(queries) < 50 {
		t.Fatalf("the dashboard has %d queries, want at least 50", len(queries))
	}
	for _, query := range queries {
		s.eventually(10*time.Second, "data of "+query, func() bool { return s.answers(prometheus, query) > 0 })
	}
	// Not once: after a scrape that a busy machine has delayed, there is nothing for a moment.
	s.eventually(10*time.Second, "an executed command", func() bool {
		return s.answers(prometheus, `sum(motorpool_commands_total{action="lock",outcome="executed"}) >= 1`) == 1
	})
	s.checkRules(prometheus)
	t.Logf("%d queries of the dashboard have data, and only the certificate fires an alert", len(queries))

	killed := time.Now()
	s.must(s.mosquitto.Kill())
	s.eventually(10*time.Second, "Alertmanager has the alert", func() bool {
		var alerts []struct {
			Labels, Annotations map[string]string
			Status              struct{ State string }
		}
		s.fetchJSON(alertmanager.URL()+"/api/v2/alerts", &alerts)
		for _, a := range alerts {
			if a.Labels["alertname"] == "MotorpoolMQTTDown" && a.Labels["severity"] == "page" && a.Status.State == "active" {
				t.Logf("after %v: %s %s", time.Since(killed).Round(time.Millisecond), a.Annotations["summary"], a.Annotations["runbook"])
				return true
			}
		}
		return false
	})
}

// prometheusConfig returns the path of a copy of deploy/prometheus/prometheus.yml with the
// addresses of this test and short intervals.
func (s *stack) prometheusConfig(alertmanager string, instances ...*instance) string {
	s.Helper()
	var targets []string
	for _, i := range instances {
		targets = append(targets, `"`+strings.TrimPrefix(i.internal, "http://")+`"`)
	}
	read := func(name string) string {
		text, err := os.ReadFile(deployed + "prometheus/" + name)
		s.must(err)
		return string(text)
	}
	config := read("prometheus.yml")
	for _, change := range [][2]string{
		{"scrape_interval: 15s", "scrape_interval: 500ms"}, {"evaluation_interval: 15s", "evaluation_interval: 250ms"},
		{`"monitoring:8081"`, strings.Join(targets, ", ")}, {`"alertmanager:9093"`, `"` + alertmanager + `"`},
	} {
		if strings.Count(config, change[0]) != 1 {
			s.Fatalf("prometheus.yml must have %s exactly once", change[0])
		}
		config = strings.Replace(config, change[0], change[1], 1)
	}
	rules := regexp.MustCompile(`(?m)^        for: \w+$`).ReplaceAllString(read("rules.yml"), "        for: 500ms")
	s.must(os.WriteFile(filepath.Join(s.dir, "rules.yml"), []byte(rules), 0o600))
	file := filepath.Join(s.dir, "prometheus.yml")
	s.must(os.WriteFile(file, []byte(config), 0o600))
	return file
}

// dashboardQueries returns each query of the dashboard with its variables replaced.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(deployed + "grafana/motorpool.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	var queries []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, strings.NewReplacer("$instance", ".*", "$__rate_interval", "5s").Replace(target.Expr))
		}
	}
	return queries
}

// answers returns the number of series of a query. The test fails if Prometheus refuses the query.
func (s *stack) answers(p *devstack.Monitor, query string) int {
	s.Helper()
	var answer struct {
		Status, Error string
		Data          struct{ Result []any }
	}
	s.fetchJSON(p.URL()+"/api/v1/query?query="+url.QueryEscape(query), &answer)
	if answer.Status != "success" {
		s.Fatalf("%s: %s", query, answer.Error)
	}
	return len(answer.Data.Result)
}

type alertRule struct{ Name, Query, Health, State, LastError string }

func (s *stack) rules(p *devstack.Monitor) (rules []alertRule) {
	s.Helper()
	var loaded struct {
		Data struct{ Groups []struct{ Rules []alertRule } }
	}
	s.fetchJSON(p.URL()+"/api/v1/rules", &loaded)
	for _, group := range loaded.Data.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

// checkRules checks that Prometheus can evaluate each rule, that the metrics of each exist, and
// that none fires except for the certificate, which is valid for an hour. A busy machine may be
// slow at first.
func (s *stack) checkRules(p *devstack.Monitor) {
	s.Helper()
	var wrong []alertRule
	defer func() {
		if s.Failed() {
			s.Logf("rules in another state: %+v", wrong)
		}
	}()
	s.eventually(10*time.Second, "no alert but for the certificate", func() bool {
		wrong = slices.DeleteFunc(s.rules(p), func(r alertRule) bool {
			return (r.State == "firing") == (r.Name == "MotorpoolCertificateExpires") && r.State != "pending"
		})
		return len(wrong) == 0
	})
	rules := s.rules(p)
	if len(rules) < 20 {
		s.Errorf("%d rules are loaded, want at least 20", len(rules))
	}
	var metrics []string
	for _, rule := range rules {
		if rule.Health != "ok" {
			s.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
		}
		metrics = append(metrics, regexp.MustCompile(`\bmotorpool_\w+|\bup\b`).FindAllString(rule.Query, -1)...)
	}
	slices.Sort(metrics)
	for _, metric := range slices.Compact(metrics) {
		s.eventually(10*time.Second, "the metric "+metric, func() bool { return s.answers(p, metric) > 0 })
	}
}

func (s *stack) fetchJSON(address string, into any) {
	s.Helper()
	response, err := http.Get(address)
	s.must(err)
	defer response.Body.Close()
	s.must(json.NewDecoder(response.Body).Decode(into))
}
