//go:build !race

// Package motorpool_test checks the architecture, the language and the files of the repository,
// without the race detector: there is nothing for it to find, and it takes four times as long.
package motorpool_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
)

// arrows are those of docs/architecture.md: the packages of this project that a package may import.
// The tests of a package may import the contract suites of its ports.
var arrows = map[string][]string{
	"telematics": {}, "telematics/delivery": {"telematics"}, "telematics/dialecttest": {"telematics"},
	"telematics/wiretest": {}, "clients/go/rent": {},
	"telematics/dialects": {"telematics", "telematics/ovms", "telematics/teltonika", "telematics/v1"},
	"telematics/ovms":     {"telematics"}, "telematics/v1": {"telematics"},
	"telematics/teltonika": {"telematics"}, "simulator/teltonika": {"telematics", "simulator"},
	"telematics/signing": {"telematics"}, "tracing": {},
	"guard": {}, "mosquitto": {},
	"console": {"httpapi/accept"}, "deploy": {}, "deploy/haproxy": {},
	"deploy/kustomize": {}, "deploy/prometheus": {}, "deploy/systemd": {},
	"operators": {"telematics"}, "rental": {"telematics"}, "alerts": {"telematics"},
	"alerts/alertmanager": {"alerts", "guard", "telematics"},
	"rental/areas":        {"rental", "telematics"},
	"rental/charging":     {"guard", "rental", "telematics"},
	"rental/transitions":  {"guard", "rental", "telematics", "telematics/delivery"},
	"rental/wallet":       {"guard", "rental", "telematics"},
	"rental/rentaltest":   {"rental", "rental/stripe", "simulator/sandbox", "telematics"},
	"rental/stripe":       {"rental", "telematics"}, "simulator/sandbox": {"internal/atomicfile"},
	"broker": {
		"guard", "tracing", "telematics", "telematics/dialects", "telematics/delivery", "rental", "broker/besteffort",
		"broker/ingest",
	},
	"broker/ingest":           {"guard", "telematics", "telematics/delivery"},
	"broker/besteffort":       {"guard", "telematics", "telematics/delivery"},
	"broker/besteffort/watch": {"guard", "telematics"}, "broker/link/linktest": {"telematics"},
	"broker/link":       {"guard", "telematics", "telematics/dialects", "telematics/v1"},
	"broker/brokertest": {"broker", "broker/ingest", "telematics", "telematics/v1", "telematics/delivery", "rental"},
	"httpapi": {
		"alerts", "tracing", "operators", "telematics", "telematics/dialects", "telematics/delivery", "telematics/samples",
		"rental", "rental/areas", "httpapi/accept", "httpapi/auth", "httpapi/connections", "httpapi/contract", "httpapi/errorcode",
		"httpapi/fleetmap", "httpapi/request", "httpapi/resource", "httpapi/signin", "httpapi/signin/pages", "httpapi/stream",
	},
	"httpapi/request": {
		"tracing", "telematics", "telematics/delivery", "rental", "httpapi/auth", "httpapi/connections", "httpapi/contract",
		"httpapi/errorcode", "httpapi/resource", "httpapi/signin",
	},
	"httpapi/accept": {}, "httpapi/connections": {"telematics"}, "httpapi/health": {"guard"},
	"httpapi/auth": {"guard", "telematics", "rental"}, "httpapi/contract": {"telematics"},
	"httpapi/errorcode":    {"alerts", "telematics", "rental", "httpapi/auth", "httpapi/contract", "httpapi/signin"},
	"httpapi/signin":       {"guard", "telematics", "operators", "httpapi/auth"},
	"httpapi/signin/pages": {"operators", "httpapi/signin"}, "httpapi/signin/signintest": {"operators", "telematics"},
	"httpapi/fleetmap": {"telematics"},
	"httpapi/resource": {
		"alerts", "telematics", "telematics/samples", "telematics/dialects", "rental", "rental/areas", "httpapi/errorcode",
	},
	"httpapi/stream": {"guard", "telematics"}, "store": {},
	"store/commands": {
		"telematics", "telematics/v1", "telematics/delivery", "store/activity", "store/idempotency", "store/vehicles",
		"store/pg", "store/groupcommit", "store/unavailable",
	},
	"store/activity": {"guard", "telematics", "store/pg", "store/groupcommit", "store/unavailable"},
	"store/alerts": {
		"alerts", "guard", "telematics", "rental", "store/activity", "store/rentals", "store/vehicles", "store/pg", "store/unavailable",
	},
	"store/areas":       {"telematics", "rental", "rental/areas", "store/activity", "store/pg", "store/unavailable"},
	"store/agencykeys":  {"telematics", "rental", "store/pg", "store/unavailable"},
	"store/events":      {"telematics", "telematics/v1", "guard", "store/activity", "store/redis", "store/unavailable", "store/vehicles"},
	"store/history":     {"guard", "telematics", "telematics/samples", "store/pg", "store/unavailable"},
	"store/idempotency": {"telematics", "rental", "store/pg", "store/unavailable"},
	"store/rentals": {
		"telematics", "telematics/dialects", "rental", "store/activity", "store/idempotency", "store/vehicles",
		"store/settings", "store/pg", "store/unavailable",
	},
	"store/instances": {"store/pg", "store/unavailable"}, "store/settings": {"store/pg", "store/unavailable"},
	"store/vehicles": {
		"guard", "telematics", "telematics/dialects", "rental", "rental/areas", "store/activity", "store/areas", "store/pg",
		"store/groupcommit", "store/unavailable",
	},
	"store/twins": {
		"guard", "tracing", "telematics", "telematics/delivery", "store/vehicles", "store/pg", "store/redis",
		"store/groupcommit", "store/unavailable",
	},
	"store/operators":   {"telematics", "operators", "store/pg", "store/unavailable"},
	"store/pg":          {"guard", "store/groupcommit", "store/migrations", "store/unavailable"},
	"store/redis":       {"guard", "telematics", "telematics/delivery", "store/groupcommit", "store/unavailable"},
	"store/groupcommit": {"guard"},
	"store/unavailable": {},
	"store/migrations":  {},
	"store/storetest":   {"telematics", "store/pg", "simulator/devstack"},
	"simulator": {
		"internal/atomicfile", "telematics", "telematics/v1", "telematics/signing", "rental", "mosquitto",
	},
	"simulator/ovms":              {"telematics", "simulator"},
	"simulator/devstack":          {"guard", "telematics", "rental", "mosquitto", "deploy/haproxy"},
	"telematics/samples":          {"telematics"},
	"telematics/places":           {"guard", "telematics"},
	"telematics/places/nominatim": {"telematics"},
}

// wiring are the packages that may import every other one, except the laboratory (lab), a module
// that proves the product.
var wiring = []string{"cmd/...", "internal/..."}

// homes lists the only packages that may import a third-party library; "store/..." is the package
// and those in its folder.
var homes = map[string][]string{
	"github.com/eclipse/paho.mqtt.golang": {
		"broker/link", "broker/link/linktest", "simulator", "simulator/teltonika", "simulator/ovms",
	},
	"github.com/labstack/echo/": {"httpapi", "httpapi/request"}, "github.com/getkin/kin-openapi": {"httpapi/contract"},
	"github.com/coreos/go-oidc/": {"httpapi/signin"}, "golang.org/x/oauth2": {"httpapi/signin"},
	"golang.org/x/crypto/": {"operators"}, "github.com/jmoiron/sqlx": {"store/..."},
	// devstack polls until the server is ready.
	"github.com/lib/pq":                          {"store/...", "simulator/devstack"},
	"github.com/redis/go-redis/":                 {"store/..."},
	"github.com/mochi-mqtt/server/":              {"simulator/devstack"},
	"github.com/alicebob/miniredis/":             {"simulator/devstack"},
	"github.com/fergusstrange/embedded-postgres": {"simulator/devstack"},
	// This library is used until it is part of the standard library, in Go 1.27.
	"github.com/go-json-experiment/json": {"telematics/v1", "store/vehicles", "store/twins", "httpapi/contract"},
	"pgregory.net/rapid":                 {"broker/brokertest"}, // and tests
	"github.com/Rhymond/go-money":        {"rental"}, "github.com/peterstace/simplefeatures/": {"rental/areas"},
	"github.com/stripe/stripe-go/": {"rental/stripe"},
	"github.com/prometheus/client_golang/": {
		"alerts/alertmanager", "guard", "internal/metricstest", "broker", "broker/besteffort", "broker/ingest", "store/pg",
		"store/alerts", "store/history", "store/redis", "store/twins", "httpapi/connections", "httpapi/health", "httpapi/signin",
		"httpapi/stream", "rental/charging", "rental/transitions", "telematics/places", "internal/app",
	},
	// app: client_golang uses these two.
	"github.com/prometheus/common/": {"internal/metricstest", "internal/app"},
	"github.com/prometheus/procfs":  {"internal/app"},
	"go.opentelemetry.io/":          {"tracing", "internal/app"},
}

// maxFiles is how many files without tests a package may have, so that a reader can know them by
// name.
const maxFiles = 25

// maxMethods is how many exported methods of a type a reader can know by name.
const maxMethods = 30

type goPackage struct {
	Dir        string
	ImportPath string
	GoFiles    []string
	Imports    []string
	Deps       []string

	TestImports, XTestImports []string
}

func TestArrows_PointAtTheDomain(t *testing.T) {
	for _, p := range list(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, "motorpool/")
		allowed, ok := arrows[name]
		if !ok && !slices.ContainsFunc(wiring, func(home string) bool { return isIn(home, name) }) && name != "motorpool" {
			t.Errorf("%s is not in the list: add the packages that it may import", name)
		}
		if len(p.GoFiles) > maxFiles {
			t.Errorf("%s has %d files, at most %d: divide it, or merge small ones", name, len(p.GoFiles), maxFiles)
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.HasPrefix(imported, "motorpool/lab/") {
				t.Errorf("%s imports %s: the product does not need its laboratory", name, imported)
			}
		}
		for _, imported := range p.Imports {
			ours, isOurs := strings.CutPrefix(imported, "motorpool/")
			if isForTests := strings.HasSuffix(name, "test") && (ours == "internal/assert" || ours == "internal/require"); isForTests {
				continue
			}
			if isOurs && ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s, which its arrows do not allow", name, ours)
			}
			for library, home := range homes {
				if strings.HasPrefix(imported, library) && !slices.ContainsFunc(home, func(h string) bool { return isIn(h, name) }) {
					t.Errorf("%s imports %s, which only %v may import", name, imported, home)
				}
			}
		}
	}
}

// Methods that an embedded type of the same package adds count, too: such parts do not make a type
// smaller. Without an importer, those of other packages are unknown; they count in their package.
func TestMethods_NoTypeHasTooMany(t *testing.T) {
	unresolved := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	for _, p := range list(t, "./...", "./lab/...") {
		set := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
		checked, _ := unresolved.Check(p.ImportPath, set, files, nil) // reports the imports
		for _, name := range checked.Scope().Names() {
			named, ok := checked.Scope().Lookup(name).(*types.TypeName)
			if !ok {
				continue
			}
			if n := exportedMethods(named.Type()); n > maxMethods {
				t.Errorf(
					"%s.%s has %d exported methods, at most %d: divide it by port or by noun, or remove those without a caller",
					p.ImportPath, name, n, maxMethods,
				)
			}
		}
	}
}

func exportedMethods(of types.Type) (n int) {
	if !types.IsInterface(of) {
		of = types.NewPointer(of)
	}
	for method := range types.NewMethodSet(of).Methods() {
		if method.Obj().Exported() {
			n++
		}
	}
	return n
}

func TestService_IsNotLinkedWithTheDevelopmentWorld(t *testing.T) {
	deps := list(t, "./cmd/motorpool")[0].Deps
	linked := func(home string) bool {
		return slices.ContainsFunc(deps, func(dep string) bool { return isIn("motorpool/"+home, dep) })
	}
	for _, dep := range deps {
		if strings.HasPrefix(dep, "motorpool/simulator") {
			t.Errorf("cmd/motorpool is linked with %s", dep)
		}
		for library, home := range homes {
			if strings.HasPrefix(dep, library) && !slices.ContainsFunc(home, linked) {
				t.Errorf("cmd/motorpool is linked with %s", dep)
			}
		}
	}
}

// isIn reports whether a package is the home, or is in its folder if the home ends with "/...".
func isIn(home, name string) bool {
	folder, ok := strings.CutSuffix(home, "/...")
	return name == folder || ok && strings.HasPrefix(name, folder+"/")
}

func list(t *testing.T, patterns ...string) []goPackage {
	t.Helper()
	out, err := exec.Command(
		"go",
		append([]string{"list", "-json=Dir,ImportPath,GoFiles,Imports,Deps,TestImports,XTestImports"}, patterns...)...).Output()
	require.NoError(t, err, "go list")
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p goPackage
		require.NoError(t, decoder.Decode(&p), "go list")
		packages = append(packages, p)
	}
	return packages
}
