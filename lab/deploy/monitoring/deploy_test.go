// Package monitoring_test checks the files with which an installation is monitored. A test of
// internal/app uses them with real servers.
package monitoring_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../../deploy"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type rule struct {
	Alert       string
	For         string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, "prometheus/rules.yml", &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("rules.yml has no rules")
	}
	return all
}

func TestPrometheus_FilesPassTheToolsOfTheServers(t *testing.T) {
	devstack.NeedServer(t, devstack.PrometheusServer)
	devstack.NeedServer(t, devstack.AlertmanagerServer)
	for _, command := range []string{
		"promtool check config prometheus.yml", // with the rule files that it names
		"promtool check rules --lint-fatal rules.yml",
		"promtool test rules rules_test.yml",
		"amtool check-config alertmanager.yml",
	} {
		words := strings.Fields(command)
		run := exec.Command(words[0], words[1:]...)
		run.Dir = "prometheus"
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

const (
	alertsDocument = "../docs/alerts.md"
	alertsBegin    = "<!-- UPDATE=1 go test -run Alerts ./lab/deploy/monitoring writes this table. -->\n\n"
	alertsEnd      = "\n<!-- end of the alerts -->"
)

// Each alert is in a section of the page of the alerts, to which its runbook leads.
func TestAlerts_HaveASeverityASummaryAndARunbookThatExists(t *testing.T) {
	text, err := os.ReadFile(alertsDocument)
	require.NoError(t, err)
	runbooks, used := map[string]string{}, map[string]bool{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for _, alert := range regexp.MustCompile(`\*\*(Motorpool\w+)\*\*`).FindAllStringSubmatch(body, -1) {
			runbooks[alert[1]] = "docs/alerts.md#" + strings.ReplaceAll(strings.ToLower(heading), " ", "-")
		}
	}
	for _, r := range rules(t) {
		if severity := r.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s: severity %q, want page or ticket", r.Alert, severity)
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}
		if runbook := runbooks[r.Alert]; runbook == "" || r.Annotations["runbook"] != runbook {
			t.Errorf("%s: runbook %q, want %q", r.Alert, r.Annotations["runbook"], runbook)
		}
		used[r.Alert] = true
	}
	for alert := range runbooks {
		if !used[alert] {
			t.Errorf("docs/alerts.md explains %s, which no rule raises", alert)
		}
	}
}

// The page of the alerts has the table of the rules. In a summary, {{ $labels.instance }} reads as
// the name of the label.
func TestAlerts_AreTheTableOfTheDocumentation(t *testing.T) {
	template := regexp.MustCompile(`\{\{ \$(?:labels\.)?(\w+)[^}]*\}\}`)
	var table strings.Builder
	table.WriteString("| alert | for | severity | summary |\n|---|---|---|---|\n")
	for _, r := range rules(t) {
		_, section, _ := strings.Cut(r.Annotations["runbook"], "#")
		fmt.Fprintf(&table, "| [%s](#%s) | %s | %s | %s |\n", r.Alert, section, cmp.Or(r.For, "0s"), r.Labels["severity"],
			template.ReplaceAllString(r.Annotations["summary"], "*$1*"))
	}
	page, err := os.ReadFile(alertsDocument)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(page), alertsBegin)
	written, after, ends := strings.Cut(rest, alertsEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the markers of the alerts", alertsDocument)
	}
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(alertsDocument, []byte(before+alertsBegin+table.String()+alertsEnd+after), 0o644))
	} else if written != table.String() {
		t.Errorf("%s differs from the rules:\n%s\nwant\n%s", alertsDocument, written, table.String())
	}
}

func TestAlerts_FireInOneCaseAndStaySilentInAnother(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert  string `json:"alertname"`
				Alerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	readYAML(t, "prometheus/rules_test.yml", &file)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Alerts) > 0
			silent[c.Alert] = silent[c.Alert] || len(c.Alerts) == 0
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: a case in which it fires: %t, a case in which it does not: %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

func TestDashboard_PanelsDoNotOverlapAndHaveQueries(t *testing.T) {
	text, err := os.ReadFile("grafana/motorpool.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	var ids []int
	taken := map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if p.Title == "" || slices.Contains(ids, p.ID) {
			t.Errorf("panel %d, %q: no title, or a duplicate id", p.ID, p.Title)
		}
		ids = append(ids, p.ID)
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %s overlaps %s or the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
