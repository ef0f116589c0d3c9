// Package kustomize_test renders the Kubernetes manifests as kubectl does, and validates them
// against the types of Kubernetes.
package kustomize_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../../deploy/kustomize"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// manifests are the rendered objects of a folder, by kind and name.
type manifests struct {
	deployment *appsv1.Deployment
	budget     *policyv1.PodDisruptionBudget
	network    *networkingv1.NetworkPolicy
	account    *corev1.ServiceAccount
	ingress    *networkingv1.Ingress // nil: none
	services   map[string]*corev1.Service
	configs    map[string]*corev1.ConfigMap
	secrets    map[string]*corev1.Secret
}

// render builds a folder and decodes each object strictly: an unknown field is an error.
func render(t *testing.T, folder string) *manifests {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	m := &manifests{services: map[string]*corev1.Service{}, configs: map[string]*corev1.ConfigMap{}, secrets: map[string]*corev1.Secret{}}
	for _, object := range built.Resources() {
		text, err := object.AsYAML()
		require.NoError(t, err)
		var into metav1.Object
		switch kind := object.GetKind(); kind {
		case "Deployment":
			m.deployment = &appsv1.Deployment{}
			into = m.deployment
		case "PodDisruptionBudget":
			m.budget = &policyv1.PodDisruptionBudget{}
			into = m.budget
		case "NetworkPolicy":
			m.network = &networkingv1.NetworkPolicy{}
			into = m.network
		case "ServiceAccount":
			m.account = &corev1.ServiceAccount{}
			into = m.account
		case "Ingress":
			m.ingress = &networkingv1.Ingress{}
			into = m.ingress
		case "Service":
			m.services[object.GetName()] = &corev1.Service{}
			into = m.services[object.GetName()]
		case "ConfigMap":
			m.configs[object.GetName()] = &corev1.ConfigMap{}
			into = m.configs[object.GetName()]
		case "Secret":
			m.secrets[object.GetName()] = &corev1.Secret{}
			into = m.secrets[object.GetName()]
		default:
			t.Fatalf("no test knows objects of the kind %s", kind)
		}
		assert.NoError(t, yaml.UnmarshalStrict(text, into), "%s %s", object.GetKind(), object.GetName())
		if problems := validation.IsDNS1123Label(into.GetName()); len(problems) > 0 {
			t.Errorf("invalid name %s: %v", into.GetName(), problems)
		}
	}
	if m.deployment == nil || m.budget == nil || m.network == nil || m.account == nil || len(m.services) != 2 || len(m.configs) != 1 {
		t.Fatalf("an object is missing: %+v", m)
	}
	return m
}

func (m *manifests) settings() map[string]string {
	for _, config := range m.configs {
		return config.Data
	}
	return nil
}

func TestBase_SelectsTheInstances(t *testing.T) {
	m := render(t, "base")
	pod := labels.Set(m.deployment.Spec.Template.Labels)
	selectors := map[string]labels.Selector{
		"motorpool":          labels.SelectorFromSet(m.services["motorpool"].Spec.Selector),
		"motorpool-internal": labels.SelectorFromSet(m.services["motorpool-internal"].Spec.Selector),
	}
	for name, selector := range map[string]*metav1.LabelSelector{
		"deployment":        m.deployment.Spec.Selector,
		"disruption budget": m.budget.Spec.Selector,
		"network policy":    &m.network.Spec.PodSelector,
		"topology":          m.deployment.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector,
	} {
		s, err := metav1.LabelSelectorAsSelector(selector)
		require.NoError(t, err)
		selectors[name] = s
	}
	for name, selector := range selectors {
		if selector.Empty() || !selector.Matches(pod) {
			t.Errorf("%s selects %q, the instances are %q", name, selector, pod)
		}
	}
	if m.account.Name != m.deployment.Spec.Template.Spec.ServiceAccountName {
		t.Errorf("the instances run as %q, the account is %q", m.deployment.Spec.Template.Spec.ServiceAccountName, m.account.Name)
	}
}

// The ports of services, probes and policies are those that the settings open.
func TestBase_NamesThePortsThatAreOpen(t *testing.T) {
	m := render(t, "base")
	container := m.deployment.Spec.Template.Spec.Containers[0]
	open := map[string]int32{}
	for _, port := range container.Ports {
		open[port.Name] = port.ContainerPort
	}
	for name, setting := range map[string]string{"http": "MOTORPOOL_HTTP", "internal": "MOTORPOOL_INTERNAL", "health": "MOTORPOOL_HEALTH"} {
		_, port, _ := strings.Cut(m.settings()[setting], ":")
		if want := open[name]; want == 0 || port != strconv.Itoa(int(want)) {
			t.Errorf("%s is %q, but the port %s of the container is %d", setting, m.settings()[setting], name, want)
		}
	}
	for name, service := range m.services {
		for _, port := range service.Spec.Ports {
			if _, ok := open[port.TargetPort.StrVal]; !ok {
				t.Errorf("the service %s targets the port %q, which is not open", name, port.TargetPort.StrVal)
			}
		}
	}
	for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if probe.HTTPGet.Port.StrVal != "health" {
			t.Errorf("a probe uses the port %v, want health", probe.HTTPGet.Port)
		}
	}
	if container.LivenessProbe.HTTPGet.Path != "/healthz" || container.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("want /healthz for liveness and /readyz for readiness: a restart does not repair a database")
	}
	for _, rule := range m.network.Spec.Ingress {
		if rule.Ports[0].Port.StrVal != "internal" {
			continue
		}
		// Anyone who may run a pod in a namespace chooses its labels.
		if len(rule.From) != 1 || rule.From[0].PodSelector.MatchLabels["app.kubernetes.io/name"] != "prometheus" ||
			rule.From[0].NamespaceSelector == nil ||
			rule.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "monitoring" {
			t.Errorf("the internal listener accepts %+v, want only prometheus in the namespace monitoring", rule.From)
		}
	}
}

// A rolling update must not interrupt a command: a new instance is ready before an old one ends,
// and the old one has the drain and 90 s.
func TestBase_RollsWithoutLosingACommand(t *testing.T) {
	m := render(t, "base")
	rolling := m.deployment.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.IntValue() < 1 {
		t.Errorf("an update removes instances before new ones are ready: %+v", m.deployment.Spec.Strategy)
	}
	drain, err := time.ParseDuration(m.settings()["MOTORPOOL_DRAIN"])
	require.NoError(t, err)
	grace := time.Duration(*m.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if grace < drain+90*time.Second {
		t.Errorf("the grace period is %v, want the drain of %v and 90 s", grace, drain)
	}
	readiness := m.deployment.Spec.Template.Spec.Containers[0].ReadinessProbe
	if notice := time.Duration(readiness.PeriodSeconds*readiness.FailureThreshold+readiness.TimeoutSeconds) * time.Second; drain < notice {
		t.Errorf("the removal of an instance from the service takes %v, more than the drain of %v", notice, drain)
	}
}

func TestBase_RunsWithoutPrivileges(t *testing.T) {
	pod := render(t, "base").deployment.Spec.Template.Spec
	c := pod.Containers[0].SecurityContext
	switch {
	case pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot:
		t.Error("the pod may run as root")
	case pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken:
		t.Error("the pod has a token of the cluster")
	case *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}):
		t.Errorf("security context %+v, want no privileges", c)
	}
}

// settings checks that each setting is one of 'motorpool serve'.
func settings(t *testing.T, m *manifests) {
	t.Helper()
	help, err := exec.Command("go", "run", "motorpool/cmd/motorpool", "serve", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	known := regexp.MustCompile(`MOTORPOOL_\w+`).FindAllString(string(help), -1)
	for name := range m.settings() {
		if !slices.Contains(known, name) {
			t.Errorf("%s is not a setting of 'motorpool serve'", name)
		}
	}
}

// TestInstall_PageRendersAnInstallation runs what docs/install.md says, with files of an operator,
// and renders the folder that it applies.
func TestInstall_PageRendersAnInstallation(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/install.md"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "\n## In Kubernetes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(folder, "deploy/kustomize"), os.DirFS(".")))
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "keys"), 0o700))
	write("keys/signing.jwks", "{}")
	write("keys/tokens.jwks", "{}")
	var image string
	var m *manifests
	for line := range strings.Lines(section) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "docker build "):
			image = words[slices.Index(words, "-t")+1]
		case strings.HasPrefix(line, "cp "):
			cp := exec.Command(words[0], words[1:]...)
			cp.Dir = folder
			if said, err := cp.CombinedOutput(); err != nil {
				t.Fatalf("%s%v: %s", line, err, said)
			}
		case strings.HasPrefix(line, "kubectl apply -k "):
			write(words[3]+"/motorpool.env", "MOTORPOOL_DATABASE_URL=postgres://db\n")
			m = render(t, filepath.Join(folder, words[3]))
		}
	}
	if m == nil {
		t.Fatal("the page applies no folder")
	}
	pod := m.deployment.Spec.Template.Spec
	if m.deployment.Namespace != "motorpool" || *m.deployment.Spec.Replicas != 3 || pod.Containers[0].Image != image {
		t.Errorf(
			"namespace %s, %d instances of %s, and the page builds %s", m.deployment.Namespace,
			*m.deployment.Spec.Replicas, pod.Containers[0].Image, image,
		)
	}
	for _, from := range pod.Containers[0].EnvFrom {
		if from.ConfigMapRef != nil && m.configs[from.ConfigMapRef.Name] == nil ||
			from.SecretRef != nil && m.secrets[from.SecretRef.Name] == nil {
			t.Errorf("the settings come from %+v, which does not exist", from)
		}
	}
	keys := m.secrets[pod.Volumes[0].Secret.SecretName]
	if keys == nil || keys.Data["signing.jwks"] == nil || keys.Data["tokens.jwks"] == nil {
		t.Errorf("the secret of the keys is %+v", keys)
	}
	settings(t, m)
	if m.ingress == nil {
		t.Fatal("there is no ingress")
	}
	rule := m.ingress.Spec.Rules[0]
	if to := rule.HTTP.Paths[0].Backend.Service; m.services[to.Name] == nil || to.Port.Name != m.services[to.Name].Spec.Ports[0].Name {
		t.Errorf("the ingress leads to %+v, which is no port of a service", to)
	}
	if console := m.settings()["MOTORPOOL_CONSOLE_URL"]; console != "https://"+rule.Host || m.ingress.Spec.TLS[0].Hosts[0] != rule.Host {
		t.Errorf(
			"the ingress is of %s, with a certificate of %s, and the console is at %s", rule.Host,
			m.ingress.Spec.TLS[0].Hosts, console,
		)
	}
}
