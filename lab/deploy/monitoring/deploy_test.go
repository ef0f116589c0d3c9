// Package monitoring_test checks the files with which an installation is monitored. A test of
// internal/app uses them with real servers.
package monitoring_test

import (
	"encoding/json"
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
	require.NoError(t, yaml.Unmarshal(text, into), "%s", file)
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

// Each alert is in a section of the page of the alerts, to which its runbook leads, with its
// severity.
func TestAlerts_AreInTheSectionOfTheirRunbookWithTheirSeverity(t *testing.T) {
	text, err := os.ReadFile("../docs/alerts.md")
	require.NoError(t, err)
	runbooks, severities := map[string]string{}, map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		for _, alert := range regexp.MustCompile(`\*\*(Motorpool\w+)\*\*\s+\(([^;)]+)`).FindAllStringSubmatch(body, -1) {
			runbooks[alert[1]] = "docs/alerts.md#" + strings.ReplaceAll(strings.ToLower(heading), " ", "-")
			severities[alert[1]] = strings.Join(strings.Fields(alert[2]), " ")
		}
	}
	raised := map[string][]string{}
	for _, r := range rules(t) {
		severity := r.Labels["severity"]
		if severity != "page" && severity != "ticket" {
			t.Errorf("%s: severity %q, want page or ticket", r.Alert, severity)
		}
		raised[r.Alert] = append(raised[r.Alert], severity)
		if r.Annotations["summary"] == "" {
			t.Errorf("%s has no summary", r.Alert)
		}
		if runbook := runbooks[r.Alert]; runbook == "" || r.Annotations["runbook"] != runbook {
			t.Errorf("%s: runbook %q, want %q", r.Alert, r.Annotations["runbook"], runbook)
		}
	}
	for alert, said := range severities {
		if want := strings.Join(raised[alert], ", then "); said != want {
			t.Errorf("docs/alerts.md says that %s is %q, and the rules that it is %q", alert, said, want)
		}
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
