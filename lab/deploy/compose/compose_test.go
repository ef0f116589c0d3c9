// Package compose_test checks docker-compose.yml.
package compose_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// compose loads docker-compose.yml with the library of Docker, which validates it against the
// specification.
func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions(
		[]string{"docker-compose.yml"}, cli.WithName("motorpool"), cli.WithProfiles([]string{"observe", "tools"}),
	)
	require.NoError(t, err)
	project, err := options.LoadProject(context.Background())
	require.NoError(t, err, "docker-compose.yml")
	return project
}

func TestCompose_HasEveryPartAndPublishesToThisMachineOnly(t *testing.T) {
	project := compose(t)
	for _, name := range []string{
		"setup", "mosquitto", "redis", "postgres", "motorpool", "fleet", "prometheus", "alertmanager", "grafana",
	} {
		if _, ok := project.Services[name]; !ok {
			t.Errorf("there is no service %s", name)
		}
	}
	published := 0
	for name, service := range project.Services {
		for _, port := range service.Ports {
			published++
			if ip := net.ParseIP(port.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("%s publishes %s on %q, want a loopback address", name, port.Published, port.HostIP)
			}
			if onlyInternal(project, service) {
				t.Errorf("%s publishes a port from an internal network, which Docker does not support", name)
			}
		}
		if service.Restart != "" && (service.HealthCheck == nil || len(service.HealthCheck.Test) == 0) {
			t.Errorf("%s has no health check", name)
		}
	}
	if published == 0 {
		t.Error("no port is published, so the API cannot be reached")
	}
}

func onlyInternal(project *types.Project, service types.ServiceConfig) bool {
	for name := range service.Networks {
		if !project.Networks[name].Internal {
			return false
		}
	}
	return true
}

// Units connect to the MQTT broker, and must not reach the other servers of the service.
func TestCompose_KeepsUnitsAwayFromTheServicesServers(t *testing.T) {
	project := compose(t)
	for _, name := range []string{"redis", "postgres", "motorpool", "prometheus", "alertmanager", "grafana"} {
		if _, shared := project.Services[name].Networks["units"]; shared {
			t.Errorf("%s is in the network of the units", name)
		}
	}
	fleet := project.Services["fleet"].Networks
	if _, ok := fleet["units"]; !ok || len(fleet) != 1 {
		t.Errorf("the fleet is in the networks %v, want only units", fleet)
	}
}

// Docker probes the service on its health listener.
func TestCompose_ProbesTheHealthListener(t *testing.T) {
	service := compose(t).Services["motorpool"]
	health, internal := service.Environment["MOTORPOOL_HEALTH"], service.Environment["MOTORPOOL_INTERNAL"]
	if health == nil || internal == nil {
		t.Fatal("a listener has no address")
	}
	_, port, err := net.SplitHostPort(*health)
	if test := strings.Join(service.HealthCheck.Test, " "); err != nil || !strings.Contains(test, ":"+port+"/readyz") {
		t.Errorf("the probe is %s, the listener %s: %v", test, *health, err)
	}
}

// The internal listener requires no token: only Prometheus shares its network.
func TestCompose_ShowsTheInternalListenerToPrometheusAlone(t *testing.T) {
	project := compose(t)
	address := *project.Services["motorpool"].Environment["MOTORPOOL_INTERNAL"]
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	network := ""
	for name, config := range project.Services["motorpool"].Networks {
		if config != nil && slices.Contains(config.Aliases, host) {
			network = name
		}
	}
	if network == "" || !project.Networks[network].Internal {
		t.Fatalf("%s is in the network %q, want an internal one", address, network)
	}
	var members []string
	for name, service := range project.Services {
		if _, ok := service.Networks[network]; ok {
			members = append(members, name)
		}
	}
	slices.Sort(members)
	if !slices.Equal(members, []string{"motorpool", "prometheus"}) {
		t.Errorf("the network %s has %v, want motorpool and prometheus", network, members)
	}
	config, err := os.ReadFile("deploy/prometheus/prometheus.yml")
	if err != nil || !strings.Contains(string(config), `["`+address+`"]`) {
		t.Errorf("prometheus does not scrape %s: %v", address, err)
	}
}

func TestCompose_StartsWhatObservesOnlyOnRequest(t *testing.T) {
	for name, service := range compose(t).Services {
		observes := slices.Contains([]string{"prometheus", "alertmanager", "grafana"}, name)
		if observes != slices.Equal(service.Profiles, []string{"observe"}) {
			t.Errorf("%s has the profiles %v; only services that observe have the profile observe", name, service.Profiles)
		}
	}
}

// Every variable that compose sets is a setting of the service.
func TestCompose_SetsOnlyVariablesThatExist(t *testing.T) {
	config, err := os.ReadFile("internal/app/config.go")
	require.NoError(t, err)
	// Settings of motorpool passwd.
	known := []string{"MOTORPOOL_UNIT_SECRET", "MOTORPOOL_SERVICE_PASSWORD"}
	for _, match := range regexp.MustCompile(`(?m)^\t(\w+)\s+\S+\s+`+"`"+`(?:name:"([\w-]+)")?`).FindAllStringSubmatch(string(config), -1) {
		name := match[2]
		if name == "" {
			name = kebab(match[1])
		}
		known = append(known, "MOTORPOOL_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	}
	text, err := os.ReadFile("docker-compose.yml")
	require.NoError(t, err)
	for _, name := range regexp.MustCompile(`MOTORPOOL_\w+`).FindAllString(string(text), -1) {
		if !slices.Contains(known, name) {
			t.Errorf("%s is not a setting; known are %v", name, known)
		}
	}
}

// kebab returns the name of a field as kong writes it: DatabaseURL is database-url.
func kebab(field string) string {
	words := regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(field, "$1-$2")
	return strings.ToLower(words)
}

func TestCompose_MountsOnlyFilesThatExist(t *testing.T) {
	for name, service := range compose(t).Services {
		for _, v := range service.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s mounts %s: %v", name, v.Source, err)
			}
		}
	}
}

// An operator who sources the secrets gets the same values as the service.
func TestCompose_HandsTheServicesSecretsToAnOperatorToo(t *testing.T) {
	project := compose(t)
	if script := strings.Join(project.Services["motorpool"].Command, ""); !strings.Contains(script, ". /secrets/env\n") {
		t.Errorf("the service does not source the secrets of setup: %s", script)
	}
	_, rest, found := strings.Cut(strings.ReplaceAll(strings.Join(project.Services["setup"].Command, ""), "$$", "$"), "printf 'export ")
	if !found {
		t.Fatal("setup writes no variables")
	}
	writes, _, _ := strings.Cut("printf 'export "+rest, "\nexport ")
	dir := t.TempDir()
	writes = strings.ReplaceAll(writes, "/database/", "")
	for name, secret := range map[string]string{"postgres.secret": "pg1", "service.secret": "mq2", "agency.secret": "YWdlbmN5Lys9PQ=="} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(secret), 0o600))
	}
	command := exec.Command(
		"sh", "-euc",
		writes+"\n. ./env; sh -c 'echo $MOTORPOOL_DATABASE_URL $MOTORPOOL_MQTT_PASSWORD $MOTORPOOL_AGENCY_SECRETS_KEY'",
	)
	command.Dir = dir
	out, err := command.CombinedOutput()
	want := "postgres://motorpool:pg1@postgres:5432/motorpool?sslmode=disable mq2 YWdlbmN5Lys9PQ=="
	if err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%s prints %s, %v; want %s", writes, out, err, want)
	}
}

// What people have changed, such as by a booking of a vehicle that moved to another agency, may let
// the import of the demo fleet be refused at the next start.
func TestCompose_StartsWhereTheImportIsRefused(t *testing.T) {
	script := strings.ReplaceAll(strings.Join(compose(t).Services["motorpool"].Command, ""), "$$", "$")
	script = strings.ReplaceAll(script, "/secrets/env", "./env")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "env"), nil, 0o600))
	for code, want := range map[int]string{0: "serves", 3: "serves", 6: ""} {
		program := fmt.Sprintf("#!/bin/sh\ncase $1 in import) exit %d;; serve) echo serves;; esac\n", code)
		if err := os.WriteFile(filepath.Join(dir, "motorpool"), []byte(program), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		command := exec.Command("sh", "-euc", script)
		command.Dir, command.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := command.Output()
		if got := strings.TrimSpace(string(out)); got != want || (err == nil) != (want != "") {
			t.Errorf("after an import with exit code %d the container prints %q, %v; want %q", code, got, err, want)
		}
	}
}

func TestCompose_RunsPostgresWithTheRecommendedSettings(t *testing.T) {
	var settings []string
	for i, argument := range compose(t).Services["postgres"].Command {
		if i%2 == 0 && i > 0 {
			settings = append(settings, argument)
		}
	}
	assert.EqualSlices(t, settings, devstack.RecommendedSettings, "settings")
	page, err := os.ReadFile("docs/servers.md")
	require.NoError(t, err)
	for _, setting := range devstack.RecommendedSettings {
		if !strings.Contains(string(page), "`"+setting+"`") {
			t.Errorf("docs/servers.md does not have %s", setting)
		}
	}
}

// An attacker in one container has the secrets of that one alone.
func TestCompose_EachContainerHasItsOwnSecrets(t *testing.T) {
	project := compose(t)
	secrets := []string{"secrets", "issuer", "database", "unit-logins", "mqtt"}
	for name, want := range map[string][]string{
		"setup": secrets, "motorpool": {"secrets"}, "operator": {"secrets"}, "token": {"issuer"}, "postgres": {"database"},
		"fleet": {"unit-logins"}, "mosquitto": {"mqtt"},
		"redis": nil, "prometheus": nil, "alertmanager": nil, "grafana": nil,
	} {
		var has []string
		for _, v := range project.Services[name].Volumes {
			if slices.Contains(secrets, v.Source) {
				has = append(has, v.Source)
			}
		}
		assert.EqualSlices(t, has, want, "%s mounts the secrets", name)
	}
	if len(project.Services) != 11 {
		t.Errorf("%d services, want 11: what may a new one know?", len(project.Services))
	}
}

// The console can be entered, and the commands for that stand at the top of the file.
func TestCompose_LetsPeopleIn(t *testing.T) {
	project := compose(t)
	service := project.Services["motorpool"]
	address := service.Environment["MOTORPOOL_CONSOLE_URL"]
	if address == nil {
		t.Fatal("the service has no console")
	}
	published := false
	for _, port := range service.Ports {
		published = published || *address == "http://"+net.JoinHostPort(port.HostIP, port.Published)
	}
	if !published {
		t.Errorf("browsers reach %v, and not %s", service.Ports, *address)
	}
	text, err := os.ReadFile("docker-compose.yml")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^#   docker compose run --rm (\w+) `).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 2 || commands[0][1] != "operator" || commands[1][1] != "token" {
		t.Errorf("the file begins with the commands %v, want operator and token", commands)
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, command := range commands {
		if project.Services[command[1]].Name == "" {
			t.Errorf("%s: there is no such service", command[0])
		}
	}
	if !strings.Contains(string(readme), "docker compose run --rm operator add ") {
		t.Error("README.md does not say how people get in")
	}

	// The entrypoint has the secrets of the service, and passes its arguments on as they are.
	script := strings.ReplaceAll(project.Services["operator"].Entrypoint[2], "$$", "$")
	dir := t.TempDir()
	for name, content := range map[string]string{
		"env":       "export MOTORPOOL_DATABASE_URL=postgres://here\n",
		"motorpool": "#!/bin/sh\necho $MOTORPOOL_DATABASE_URL; printf '%s|' \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	entry := append(
		slices.Clone(project.Services["operator"].Entrypoint[1:2]), strings.Replace(script, "/secrets/", dir+"/", 1),
		"operator", "add", "anna", "--scope", "a b",
	)
	run := exec.Command("sh", entry...)
	run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := run.CombinedOutput(); err != nil || string(out) != "postgres://here\noperator|add|anna|--scope|a b|" {
		t.Errorf("the entrypoint runs %s, %v", out, err)
	}
}
